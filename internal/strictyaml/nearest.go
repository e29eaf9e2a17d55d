package strictyaml

import (
	"fmt"
	"strings"
)

// maxWord bounds the words that are compared: the distance costs their product.
const maxWord = 128

// Nearest returns the candidate with the smallest edit distance to word (letters
// added, dropped, changed or swapped; case counts half) and whether it is near
// enough to be what was meant: a third of the word, at least one edit.
func Nearest(word string, candidates []string) (string, bool) {
	best, bestDistance := "", 1<<30
	for _, c := range candidates {
		if len(c) > maxWord || len(word) > maxWord {
			continue
		}
		if d := distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	limit := max(2, 2*len(word)/3) // distances are in half edits
	return best, best != "" && bestDistance <= limit
}

// DidYouMean returns `, did you mean "x"?` for the nearest candidate, or nothing
// where none is near.
func DidYouMean(word string, candidates []string) string {
	if near, ok := Nearest(word, candidates); ok {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}

// distance is the optimal string alignment distance in half edits.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = 2 * j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = 2 * i
		for j := 1; j <= len(b); j++ {
			row[j] = min(last[j]+2, row[j-1]+2, last[j-1]+change(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+2)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func change(x, y byte) int {
	switch {
	case x == y:
		return 0
	case strings.EqualFold(string(x), string(y)):
		return 1
	}
	return 2
}
