package catalog

// Call is one call to a target with every expression evaluated. Its values are
// escaped by construction: a parameter is one path segment, one form value or
// one JSON value, never a piece of syntax.
type Call struct {
	// Verb is one of the driver's verbs: get, post, put, patch, delete for HTTP;
	// read, list, write, remove for files.
	Verb string
	// Path is relative to the system's root. For HTTP its segments are escaped.
	Path string
	// At names another endpoint of the same system (executor.yaml: endpoints),
	// which is called without credentials; "" is the system itself.
	At string
	// Host is the Host header, for an endpoint that serves many names; "" is its own.
	Host string
	// Query holds query parameters, in no particular order.
	Query map[string]string
	// Form, JSON and Text are the body; at most one is not nil.
	Form map[string]string
	JSON any
	Text *string
	// IfMatch is an entity tag: the target must still be in that state.
	IfMatch string
	// AbsentOK says that a target which answers "there is no such thing" has answered.
	AbsentOK bool
}

// Seen is what a target answered, as expressions see it.
type Seen struct {
	Found  bool   // false only with AbsentOK
	Status int    // HTTP status; 0 for other drivers
	Data   any    // decoded JSON: map[string]any, []any, string, bool, int64, float64, nil
	Text   string // the body as text if it is not JSON
	ETag   string
}
