package shell

import (
	"slices"
	"strings"
)

// sqlText judges what is given to a database's client. dialect is psql, mysql
// or sqlite: it decides which commands of the client itself may stand here.
func (w *walker) sqlText(v *word, dialect string) (effects, string) {
	if !v.known {
		return bitExecOpaque, "the statement cannot be seen"
	}
	text := strings.TrimSpace(v.text)
	if dialect == "mysql" {
		text = strings.TrimSuffix(strings.TrimSuffix(text, ";"), `\G`)
	}
	if w.here == v && strings.Contains(strings.ReplaceAll(text, "::", ""), ":") {
		return bitUnknown, "the client puts the value of a variable in the place of a word with a colon"
	}
	if text == "" {
		return bitUnknown, "there is no statement"
	}
	if text[0] == '\\' && dialect == "psql" {
		return psqlMeta(text)
	}
	if text[0] == '.' && dialect == "sqlite" {
		return sqliteDot(text)
	}
	toks, ok := sqlTokens(text, dialect)
	if !ok {
		return bitUnknown, "the statement cannot be read for certain"
	}
	var bits effects
	var why string
	for len(toks) > 0 {
		end := slices.Index(toks, ";")
		if end < 0 {
			end = len(toks)
		}
		if b, s := sqlStatement(toks[:end], dialect); b != 0 {
			bits, why = bits|b, s
		} else if bits == 0 && slices.ContainsFunc(toks[:end], sqlWaits) {
			bits, why = bitUnbounded, "the statement waits as long as it says"
		}
		toks = toks[min(end+1, len(toks)):]
	}
	return bits, why
}

// psqlMeta accepts the commands of psql that describe, and nothing after them.
func psqlMeta(text string) (effects, string) {
	name, rest, _ := strings.Cut(text[1:], " ")
	name = strings.TrimRight(name, "+S")
	if strings.ContainsAny(text[1:], "\\\n`|;") || strings.Contains(rest, ":") {
		return bitUnknown, "this command of psql holds more than a description"
	}
	switch {
	case name == "l", name == "conninfo", name == "encoding", name == "timing", name == "x", name == "z", name == "dp", name == "sf", name == "sv", name == "q", name == "?", name == "copyright":
		return 0, ""
	case strings.HasPrefix(name, "d") && len(name) <= 4 && strings.Trim(name, "dabcCDfgilmnoOpPrsStTuvxyEFew") == "":
		return 0, ""
	}
	return bitExecOpaque, "psql's \\" + name + " does more than describe"
}

func sqliteDot(text string) (effects, string) {
	name, _, _ := strings.Cut(text[1:], " ")
	if !strings.ContainsAny(text, "\n|`") {
		switch name {
		case "tables", "schema", "indexes", "indices", "databases", "headers", "mode", "dbinfo", "stats", "version", "width", "timeout", "quit", "exit", "help", "show", "fullschema", "bail":
			return 0, ""
		}
	}
	return bitExecOpaque, "sqlite's ." + name + " may write or run something"
}

// sqlTokens cuts a text into words, numbers, signs and strings ('), in lower
// case. It says false for what clients read differently.
func sqlTokens(s, dialect string) (toks []string, ok bool) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			i++
		case strings.HasPrefix(s[i:], "--") || strings.HasPrefix(s[i:], "/*") || c == '#' || c == '\\' || c == '$' && dialect != "sqlite":
			return nil, false // comments that run, client commands, dollar quotes
		case c == '\'' || c == '"' || c == '`':
			end := i + 1
			for end < len(s) && s[end] != c {
				if s[end] == '\\' {
					return nil, false // an escape for some, a sign for others
				}
				end++
			}
			if end == len(s) {
				return nil, false
			}
			if c == '\'' {
				toks = append(toks, "'")
			} else {
				toks = append(toks, "\""+strings.ToLower(s[i+1:end]))
			}
			i = end + 1
		case isWordByte(c) || c == '@':
			end := i + 1
			for end < len(s) && (isWordByte(s[end]) || s[end] == '@') {
				end++
			}
			toks = append(toks, strings.ToLower(s[i:end]))
			i = end
		default:
			toks = append(toks, s[i:i+1])
			i++
		}
	}
	return toks, true
}

// sqlStatement judges one statement.
func sqlStatement(t []string, dialect string) (effects, string) {
	if len(t) == 0 {
		return 0, ""
	}
	for i, tok := range t {
		switch tok {
		case "drop", "truncate", "delete", "purge":
			return bitDataLoss, "the statement's " + tok + " destroys data"
		case "insert", "update", "alter", "create", "grant", "revoke", "replace", "merge", "call", "do", "copy", "load", "set", "reset", "lock", "vacuum", "reindex", "cluster", "refresh", "attach", "detach", "handler", "execute", "prepare", "into", "outfile", "dumpfile", "import", "comment", "notify", "listen", "begin", "commit", "rollback", "kill", "flush", "shutdown", "install", "uninstall", "optimize", "repair", "rename", "for":
			if tok == "replace" && i+1 < len(t) && t[i+1] == "(" || tok == "for" && i > 0 && t[i-1] == "substring" {
				continue
			}
			bits := effects(bitConfig)
			if tok == "kill" || tok == "flush" {
				bits = bitRuntime
			}
			return bits, "the statement's " + tok + " may change something"
		case "pg_shadow", "pg_authid", "authentication_string", "pg_user_mapping", "pg_read_file", "load_file", "pg_ls_dir", "\"pg_shadow", "\"pg_authid", "password", "passwd", "rolpassword":
			return bitReadSecret, "the statement reads " + strings.Trim(tok, "\"") + ", which holds secrets"
		case "user":
			if i > 1 && t[i-1] == "." && t[i-2] == "mysql" {
				return bitReadSecret, "the statement reads mysql.user, which holds secrets"
			}
		case "analyze":
			if slices.ContainsFunc(t[i:], func(s string) bool { return s == "delete" || s == "drop" || s == "truncate" }) {
				return bitDataLoss, "the statement's analyze runs what destroys data"
			}
			return bitConfig, "the statement's analyze runs or changes something"
		}
		if i+1 < len(t) && t[i+1] == "(" && (isWordByte(tok[0]) || tok[0] == '"') && !sqlFunction(tok) && !sqlWaits(tok) {
			return bitUnknown, "the function " + strings.Trim(tok, "\"") + " is not known to only read"
		}
	}
	switch t[0] {
	case "select", "show", "explain", "values", "table", "with", "desc", "describe", "(":
		return 0, ""
	case "pragma":
		if dialect == "sqlite" && !slices.Contains(t, "=") && len(t) > 1 && slices.Contains([]string{"table_info", "table_list", "index_list", "index_info", "foreign_key_list", "database_list", "integrity_check", "quick_check", "page_count", "page_size", "user_version", "journal_mode", "compile_options", "encoding", "freelist_count"}, t[1]) && (t[1] != "journal_mode" || len(t) == 2) {
			return 0, ""
		}
	}
	return bitUnknown, "the statement does not begin as one that only reads"
}

// sqlWaits lists the functions that wait.
func sqlWaits(name string) bool {
	return name == "sleep" || name == "pg_sleep" || name == "benchmark"
}

// sqlFunction lists words that may stand before a bracket: functions that only
// read, and keywords.
func sqlFunction(name string) bool {
	switch name {
	case "count", "sum", "avg", "min", "max", "round", "abs", "ceil", "floor", "coalesce", "nullif", "ifnull", "if", "greatest", "least", "mod", "power", "sqrt",
		"now", "age", "date", "time", "datetime", "strftime", "julianday", "unix_timestamp", "from_unixtime", "to_char", "to_timestamp", "to_date", "extract", "date_trunc", "date_part", "timediff", "timestampdiff", "curdate", "curtime", "sysdate", "current_timestamp",
		"length", "char_length", "lower", "upper", "trim", "ltrim", "rtrim", "substr", "substring", "left", "right", "replace", "concat", "concat_ws", "split_part", "position", "instr", "format", "lpad", "rpad", "hex", "md5", "quote_ident", "regexp_replace",
		"string_agg", "group_concat", "array_agg", "json_agg", "jsonb_agg", "json_object", "json_extract", "row_to_json", "array_length", "unnest", "generate_series", "row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value", "ntile", "bool_and", "bool_or", "total",
		"version", "database", "current_database", "current_schema", "current_user", "connection_id", "typeof", "cast", "pg_typeof", "inet_server_addr", "pg_backend_pid",
		"pg_size_pretty", "pg_database_size", "pg_total_relation_size", "pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_tablespace_size", "pg_is_in_recovery", "pg_postmaster_start_time", "pg_conf_load_time", "pg_last_wal_receive_lsn", "pg_last_wal_replay_lsn", "pg_last_xact_replay_timestamp", "pg_current_wal_lsn", "pg_wal_lsn_diff", "pg_get_indexdef", "pg_get_viewdef", "pg_get_functiondef", "pg_get_constraintdef", "pg_blocking_pids", "pg_table_is_visible", "obj_description", "col_description", "has_table_privilege", "to_regclass",
		"in", "exists", "and", "or", "not", "on", "as", "from", "where", "select", "values", "over", "by", "join", "having", "using", "when", "then", "else", "case", "any", "all", "some", "filter", "distinct", "explain", "between", "union", "interval", "lateral", "partition", "within", "group", "order", "limit", "varchar", "char", "numeric", "decimal", "recursive":
		return true
	}
	return false
}
