// Package shell says what a command may do, before anybody runs it: its effects
// with the words they come from, and the class that follows from them. It is
// pure: it knows no process, no file, no clock and no network, and the same
// text always gets the same verdict.
//
// Whatever it cannot judge, it calls stricter: a command, an option, a verb, a
// variable or a form of the language that is not listed is at least
// config_mutation, and destructive where its words tell of removing. What it
// judges is [Verdict.Command], and only that text may be run, by
// bash --noprofile --norc -c, in a scrubbed environment.
//
// # Knowledge
//
// What is known of commands is data: files of YAML, whose documents are one
// command each, and policy.yaml for paths and variables (see there). A command:
//
//	command: sort                  # the name; a file is called after it, or after a family
//	aliases: [gsort]               # on one line
//	about: sorts lines             # a verb and its object: shown as the evidence of a read
//	manual: sort(1), coreutils 9.1 # where the options were checked
//	hint: …                        # what would make it read-only
//	options: |                     # see below
//	operands: path_read*           # see below; without this key, none is expected
//	effects: config unbounded      # what it does by itself, whatever the options
//	examples:                      # class, or class+limit: checked when the file is loaded
//	  read_only: [sort -n /srv/x]
//	  config_mutation: [sort -o /srv/y /srv/x]
//
// # Options
//
// A line of the block is a group of options that are alike: their names, the
// value they take, and what they do; a backslash at its end goes on with the
// next line, and what follows a " #" is a comment. A name that is not listed escalates.
//
//	-a --all -b                            no value
//	-k --key =text                         a value, glued or as the next word
//	--color [=text]                        a value only when glued
//	-o --output =path_write                the value says the effect
//	-i --in-place [=text] !write           the option has an effect
//	--dry-run [=one(none!config|client!dry)]
//	-#                                     a number for an option: head -20
//	@name                                  the block called name under "sets"
//
// What options and values do:
//
//	!effect    has this effect, unless the run is a dry one
//	!!effect   has it in a dry run too
//	~effect    the command's own effect (under "effects") no longer holds; ~all: none does
//	!dry       a trusted dry run: own effects, operands and !effects do not count
//	!stop      the command only shows help or its version: nothing counts
//	!plain     the operands are only names: none is judged by its kind
//	!first     takes the place of the first operand (grep -e)
//	!tree      path_read operands are read with all that lies below them
//	!names     what is printed are names of files, as with "output: names"
//
// dry, stop, plain and ~ are trusted only when every word before was understood.
//
// # Operands
//
// Operands are kinds in their order, each followed by its effects and by ?, *
// or +: "path_read? path_write!data_loss?". The kinds, for values and operands:
//
//	text number           anything
//	path_read             content of a file: policy of paths
//	tree_read             content of everything below
//	path_meta             names and attributes only
//	path_write path_out   a file that is written (path_out: "-" is the output)
//	path_delete           a thing that is removed
//	path_exec             a program, library or script that is run or loaded
//	dir                   where the rest takes place (-C DIR)
//	command               the rest of the words is a command of its own
//	shell                 a text for a shell; shell* joins the rest with blanks
//	awk sed jq            a program in that language
//	sql sql(psql) sql(mysql) sql(sqlite)
//	host url              whom it asks over the network
//	env                   NAME=VALUE for a program; env* takes them as long as they come
//	kv                    NAME reads, NAME=VALUE is config
//	format                +FORMAT reads, anything else is config (date)
//	named(kind)           a name, and then a word of that kind (jq --arg)
//	one(a|b!effect)       one of these words
//	item(kind)            the name of a thing: shown as touched
//	letters(abc)          only these letters
//	replace exec          xargs -I, find -exec
//
// # Grammars
//
//	gnu       getopt_long: clusters, glued values, options anywhere, "--" (the default)
//	posix     the same, but options end at the first operand (wrappers)
//	single    -name value and -name=value, options anywhere
//	goflag    the same, but options end at the first operand
//	keyvalue  operands name=value; the names stand in the options without a dash (dd)
//	oldstyle  gnu, and a first word without a dash is a cluster (tar)
//	find      starting points, then primaries, which stand in the options
//	raw       no options: every word is an operand
//
// # Verbs
//
// commands is a mapping from a verb to a body with the keys of a command; "a|b"
// gives a verb two names; a text is short for its operands ("item(service)*"),
// "!effect" for an effect alone. acts lists verbs by their effect: of those
// nothing else is read. Verbs nest. A word that is no verb escalates,
// unless the body has operands too.
//
//	commands:
//	  list: {options: "-q", operands: text*}
//	  show: item(service)+
//	acts:
//	  runtime: [start, stop]
//
// Further keys of a command or verb: verbs: prefix (a verb may be cut short, the
// first in the file that fits is meant), globals: before (options of a command
// end at its verb; otherwise they may stand anywhere), bare: true (may stand
// without a verb), like: "container ls" (the same as that verb),
// abbreviations: true (long options may be cut short; only when every long option
// is listed), options_safe: true (no option, listed or not, writes, runs or
// shows a secret, so that an unknown word may be one), anything: true (with
// effects that are not read-only: what is not listed does not matter),
// input: true (without a path_read operand it reads its input, which may not
// end; an option with ~unbounded says that it does not), stdin: KIND (what its
// input is: a here-document is judged as that, and it waits for nobody), append: true (words come from elsewhere, as with xargs), foreign: true (its
// command runs where programs of that name may be others: no help, no dry run is
// trusted), output: tame (prints numbers and plain names: such a word is no
// option and no path), names (prints names of files that are there) or filter
// (prints lines of its input), hook: NAME (Go code in hooks.go, which may only
// add effects). A file whose name is the output of any other command is not
// read-only: whoever wrote what was printed chose the file.
//
// An operator's own files have the same form. What they say of a command that
// is known already is asked besides and can only tighten; what they leave out
// of it is as it was. "override: true" takes the place of what was known.
package shell
