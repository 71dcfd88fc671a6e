// The oracle of the command classifier: it runs what package shell calls
// read-only, and fails when anything changes.
//
// A text runs as it would run on a target (bash --noprofile --norc -c, a
// scrubbed environment, no terminal) as root of namespaces of its own: the
// machine's own programs and files lie below an overlay, the network is an
// empty one, the kernel's settings are read-only. Nothing there hinders a text
// from writing, so that a text that writes does write. Two detectors look:
//
//   - the upper directory of the overlay (what is new, changed or gone), the
//     mounts, the names, the network, the shared memory, and the decoys: other
//     processes, which nobody may end or slow down;
//   - the system calls that change something, reported by the kernel while they
//     are tried. They tell also of what failed: a file that was not there, a
//     device, a kernel setting, a signal into the void, a question to a host.
//
// What a text may leave is listed in traces_test.go, each with its reason.
//
// It can judge only what really ran. A text whose program the machine lacks
// shows nothing but that bash does nothing besides, and one that asks a daemon
// (docker, systemctl, psql …) is done by somebody who is not there: both are
// counted apart, and the tests print how many texts of which programs were
// judged. Standard input is a file of commands: a program that takes its input
// for orders is seen obeying.
package oracle
