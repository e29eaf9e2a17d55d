//go:build !race

package track_test

const raced = false
