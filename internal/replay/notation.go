package replay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxNoted bounds the batches of one series.
const maxNoted = 1_000_000

// parseNotation reads the short notation of a series, parts separated by blanks:
//
//	7            one batch of 7
//	7x60         60 batches of 7
//	7+2x60       60 batches from 7 on, each 2 more than the one before
//	7-2x60       each 2 less
//	7~5%x60      60 batches round 7, up to 5 % above and below, in an order that looks
//	             like chance and is always the same
//	_ or _x60    batches that do not have the figure
//
// A series of a single value is that in every batch: constant is true then.
func parseNotation(text string) (values []float64, constant bool, err error) {
	parts := strings.Fields(text)
	if len(parts) == 0 {
		return nil, false, fmt.Errorf("a series needs a value")
	}
	for _, p := range parts {
		if values, err = appendPart(values, p); err != nil {
			return nil, false, fmt.Errorf("%q: %w", p, err)
		}
	}
	return values, len(parts) == 1 && !strings.Contains(parts[0], "x"), nil
}

func appendPart(out []float64, part string) ([]float64, error) {
	body, times, many := strings.Cut(part, "x")
	n := 1
	if many {
		var err error
		if n, err = strconv.Atoi(times); err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number of batches", times)
		}
	}
	if len(out)+n > maxNoted {
		return nil, fmt.Errorf("more than %d batches", maxNoted)
	}
	at, err := shapeOf(body)
	if err != nil {
		return nil, err
	}
	for i := range n {
		out = append(out, at(i, len(out)))
	}
	return out, nil
}

// shapeOf reads a part without its number: the value at its i-th batch, which is
// batch n of the series.
func shapeOf(body string) (at func(i, n int) float64, err error) {
	if body == "_" {
		return func(int, int) float64 { return math.NaN() }, nil
	}
	cut := strings.LastIndexAny(body, "+-~")
	if cut <= 0 || body[cut-1] == 'e' || body[cut-1] == 'E' {
		v, err := parseNumber(body)
		return func(int, int) float64 { return v }, err
	}
	base, err := parseNumber(body[:cut])
	if err != nil {
		return nil, err
	}
	if body[cut] == '~' {
		share, ok := strings.CutSuffix(body[cut+1:], "%")
		v, err := parseNumber(share)
		if err != nil || !ok || v < 0 {
			return nil, fmt.Errorf("%q is no share such as 5%%", body[cut+1:])
		}
		return func(_, n int) float64 { return base * (1 + v/100*wobble(n)) }, nil
	}
	step, err := parseNumber(body[cut:])
	return func(i, _ int) float64 { return base + float64(i)*step }, err
}

func parseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return v, nil
}

// wobble is a number between -1 and 1 that depends on n alone.
func wobble(n int) float64 {
	x := uint64(n)*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 32
	return float64(x>>11)/(1<<52) - 1
}
