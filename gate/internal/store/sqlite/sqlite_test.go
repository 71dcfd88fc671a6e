package sqlite_test

import (
	"path/filepath"
	"testing"

	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/gate/internal/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, dir string) store.Store { return open(t, filepath.Join(dir, "gate", "gate.db")) })
}

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
