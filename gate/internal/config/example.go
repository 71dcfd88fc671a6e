package config

import "strings"

// Example returns the text of a gate.yaml.
func Example(c Config) string {
	return strings.NewReplacer(
		"{{socket}}", c.Listen.Socket,
		"{{name}}", c.Executor.Name,
		"{{executor}}", c.Executor.Socket,
		"{{key}}", c.Executor.Key,
		"{{catalog}}", c.Catalog,
	).Replace(example)
}

const example = `# The gate: decides, and cannot act. Check this file with: writ-gate config check --dir DIR
# A path is absolute, or seen from the directory of this file.

listen:
  socket: "{{socket}}"
  # tcp: 127.0.0.1:7443        # clients still need their token; another address needs TLS and hosts
  # tls: {cert: gate.crt, key: gate.pem}   # read again when they change

# hosts: [writ.example.org]    # what callers elsewhere, or a proxy before the gate, call it; loopback is always allowed

executor:                      # the process that acts; its answers count only if they are signed with this key, or with one
                               # that follows from it by the executor's own signature ("writ-executor rotate-key")
  name: "{{name}}"
  socket: "{{executor}}"
  key: "{{key}}"

# origins: [https://chat.example.org]   # pages elsewhere that may ask from a browser, but never decide

catalog: "{{catalog}}"         # the actions; "" is the shipped catalog
policy: policy.yaml            # what may run alone, what people must approve, what is denied
audit: audit                   # directory of the ledger of every event; keep it on a disk that does not fill up

checkpoint:                    # the signature over all events so far
  every: 5s                    # how long events may wait for it
  # path: /mnt/elsewhere/writ  # copy the newest out of reach of this machine's root: it shows every later change
  # url: https://log.example.org/writ   # or POST it there
  # required: true             # carry out nothing while the copy cannot be made
  # witnesses:                 # let others sign it who see that nothing before was changed; nothing waits for them
  #   - {url: https://witness.example.org/, key: witness.example.org+6f1c0a9d+BAAA…}

first_answer: 800ms            # how long a proposal waits for its decision before it is answered "still planning"

limits:                        # of each principal by itself; beyond them it is told when to ask again
  requests_per_second: 100     # twice as many at once
  proposals_per_minute: 120    # as many at once
  open_changes: 200            # that have not ended; 0 sets no limit
  connections: 1024            # open at once, on the socket and over tcp each; further ones are closed
  connections_per_address: 128 # of these, to one address of another machine

mcp:
  typed_tools: false           # true: each action is a tool as well, controlled_execution_SYSTEM_ACTION, which proposes it

epoch: 1                       # "writ recover" raises it after a restore from a backup: older writs are then refused
`
