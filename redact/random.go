package redact

import "regexp"

// chunk is a run of the characters that keys are written in.
var chunk = regexp.MustCompile(`[A-Za-z0-9+/_=\-]{20,}`)

// minEntropy is how many bits a byte of a random text tells, judged by the text
// alone; English in one word has about 3.5.
const minEntropy = 3.7

// random hides what looks like a key and nothing else.
func random(text string, report func(span)) {
	for _, m := range chunk.FindAllStringIndex(text, -1) {
		v := text[m[0]:m[1]]
		if looksRandom(v) && entropy(v) >= minEntropy {
			report(span{begin: m[0], from: m[0], to: m[1], kind: "random"})
		}
	}
}
