package storetest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// changeRoundTrip: what is read is what was stored, sealed bytes included.
func changeRoundTrip(t *testing.T, k *kit) {
	sealed := json.RawMessage(`{"payload":{"text":"<a href=\"x\">&\u2028</a>"}}`)
	want := k.change()
	want.ClientKey = "key"
	want.Request = model.Request{
		Steps: []model.RequestStep{{ID: "a", Action: "mock.noop_change", Params: writ.Object{
			"n": int64(writ.MaxInt), "list": []any{nil, true, "ü\u2028<>&"}, "o": writ.Object{},
		}, Needs: []string{}}},
		Purpose: "<b>why</b> & \u2028 \x00",
	}
	want.Writ = sealed
	want.Receipts = []model.Receipt{{Receipt: writ.Receipt{Step: "a", Outcome: writ.Done, StartedAt: now()}, Sealed: sealed}}
	want.Decision = &model.Decision{Effect: model.Approve, Count: 2, Valid: 1e9}
	want.Trouble = &model.Trouble{Code: fault.Failed, Reason: "r", Text: "t"}
	k.update(t, func(tx store.Tx) error { return tx.Insert(want) })
	k.reopen(t)
	k.view(t, func(r store.Reader) error {
		got, err := r.Change(want.ID)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the change read is not the one stored (-stored +read):\n%s", diff)
		}
		return nil
	})
	k.view(t, func(r store.Reader) error {
		_, err := r.Change("chg_other")
		wantCode(t, "read a change that is not there", err, fault.NotFound)
		return nil
	})
}
