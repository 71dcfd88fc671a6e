package model_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"writ/gate/internal/model"
)

func TestParseSession(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*model.Session{
		"":                             nil,
		" , ,":                         nil,
		"/":                            nil,
		"opencode":                     {Client: "opencode", Chain: []model.Prose{}},
		"opencode/1.18":                {Client: "opencode", Version: "1.18", Chain: []model.Prose{}},
		"@scope/bot/2":                 {Client: "@scope/bot", Version: "2", Chain: []model.Prose{}},
		"Claude Code/2.1, planner, a":  {Client: "Claude Code", Version: "2.1", Chain: []model.Prose{"planner", "a"}},
		",ana":                         {Chain: []model.Prose{"ana"}},
		"a\xff/1":                      {Client: "a\uFFFD", Version: "1", Chain: []model.Prose{}},
		"c, 1, 2, 3, 4, 5, 6, 7, 8, 9": {Client: "c", Chain: []model.Prose{"1", "2", "3", "4", "5", "6", "7", "8"}},
	} {
		if diff := cmp.Diff(want, model.ParseSession(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	long := model.ParseSession(strings.Repeat("é", 99) + "/" + strings.Repeat("9", 999) + strings.Repeat(","+strings.Repeat("x", 999), 99))
	if len(long.Client) != 100 || len(long.Version) != 100 || len(long.Chain) != 8 || len(long.Chain[7]) != 100 || !utf8.ValidString(string(long.Client)) {
		t.Errorf("%+v", long)
	}
}

func TestSession_With(t *testing.T) {
	t.Parallel()
	a, b := model.ParseSession("a/1, ana"), model.ParseSession("b/2")
	if got := a.With(b); got.Client != "b" || got.Version != "2" || len(got.Chain) != 1 {
		t.Errorf("%+v", got)
	}
	if got := b.With(model.ParseSession(", ana")); got.Client != "b" || got.Chain[0] != "ana" {
		t.Errorf("%+v", got)
	}
	var none *model.Session
	if none.With(nil) != nil || none.With(a) != a || a.With(nil) != a {
		t.Error("nothing is not nothing")
	}
}
