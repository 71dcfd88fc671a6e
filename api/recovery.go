package api

// Recovery is what gate and executor do not remember alike after one of them was
// restored from an old copy, and what was done about it. The stopped gate says it,
// not the API.
type Recovery struct {
	Epoch        int64        `json:"epoch" doc:"In force before"`
	Next         int64        `json:"next_epoch" doc:"That a recovery raises it to"`
	Raised       bool         `json:"raised" doc:"It was"`
	ExecutorTold bool         `json:"executor_told" doc:"The executor takes no writ of before any more"`
	Spent        int64        `json:"writs_spent" doc:"Writs of this gate that the executor took, none of them twice"`
	Foreign      int64        `json:"writs_of_others" doc:"Writs that another key sealed"`
	AuditAhead   bool         `json:"audit_ahead" doc:"The audit holds more events than the gate's memory"`
	AuditAside   string       `json:"audit_set_aside" doc:"Where that audit lies now"`
	Differences  []Difference `json:"differences"`
}

// Difference is one change that a recovery does something about.
type Difference struct {
	Kind     string   `json:"kind" enum:"forgotten_by_gate,forgotten_by_executor,accounted_for,void"`
	ChangeID string   `json:"change_id"`
	RunID    string   `json:"run_id"`
	Was      string   `json:"was" doc:"Its state in the gate's memory; empty if it is not there"`
	Entities []string `json:"entities" doc:"What is locked from then on"`
}
