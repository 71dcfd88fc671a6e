package pipeline

import "sync"

// news tells whoever waits that some change moved on.
type news struct {
	mu   sync.Mutex
	next chan struct{}
}

func newNews() *news { return &news{next: make(chan struct{})} }

// wait returns a channel that is closed at the next publication. Take it
// before reading the state, so that nothing falls between.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next
}

func (n *news) publish() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.next)
	n.next = make(chan struct{})
}
