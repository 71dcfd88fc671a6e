package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"writ/fault"
	"writ/wal"
)

//go:embed schema/*.sql
var schema embed.FS

// migrate brings the tables to the newest form: file NNNN.sql of the schema
// makes version NNNN from the one before, in one transaction.
func migrate(ctx context.Context, conn *sql.Conn) error {
	files, err := schema.ReadDir("schema")
	if err != nil {
		return err
	}
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(files) {
		return fault.New(fault.Unavailable, "The gate's store was written by a newer writ. Start that one, or restore a backup of the store.")
	}
	for ; version < len(files); version++ {
		text, err := schema.ReadFile(fmt.Sprintf("schema/%04d.sql", version+1))
		if err != nil {
			return err
		}
		script := fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA user_version = %d;\n%s;\nCOMMIT;", text, version+1, wal.Mark)
		if _, err := conn.ExecContext(ctx, script); err != nil {
			return err
		}
	}
	return nil
}
