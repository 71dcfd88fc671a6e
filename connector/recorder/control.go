package recorder

import (
	"encoding/json"
	"net/http"
)

// controlPrefix is where a test in another process talks to the recorder. None of it is recorded.
//
//	GET    /_fake/requests  {"requests":[Request…]}
//	GET    /_fake/writes    the same, writes only
//	DELETE /_fake/requests  Reset
//	POST   /_fake/faults    Inject; the body is one Fault
//	DELETE /_fake/faults    Release
const controlPrefix = "/_fake/"

func (r *Recorder) control(w http.ResponseWriter, q *http.Request) {
	switch q.Method + " " + q.URL.Path {
	case "GET /_fake/requests":
		show(w, r.Requests())
	case "GET /_fake/writes":
		show(w, r.Writes())
	case "DELETE /_fake/requests":
		r.Reset()
		w.WriteHeader(http.StatusNoContent)
	case "DELETE /_fake/faults":
		r.Release()
		w.WriteHeader(http.StatusNoContent)
	case "POST /_fake/faults":
		var f Fault
		d := json.NewDecoder(http.MaxBytesReader(w, q.Body, maxBody))
		d.DisallowUnknownFields() // a misspelt field would be a fault that never happens
		err := d.Decode(&f)
		if err == nil {
			err = f.check()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Inject(f)
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "the recorder has GET and DELETE /_fake/requests, GET /_fake/writes, POST and DELETE /_fake/faults",
			http.StatusNotFound)
	}
}

func show(w http.ResponseWriter, list []Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string][]Request{"requests": list})
}
