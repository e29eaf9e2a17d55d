package decode

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escapeLen returns the length of the escape at the start of b, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads the code unit of \uXXXX at the start of b.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, ch := range b[2:6] {
		switch {
		case ch-'0' <= 9:
			ch -= '0'
		case ch|0x20 >= 'a' && ch|0x20 <= 'f':
			ch = ch | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(ch)
	}
	return r, true
}

// appendUnescaped appends the text of a raw JSON string whose escapes are valid.
// What no label can hold (broken UTF-8, lone surrogates, NUL) becomes U+FFFD.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		ch := raw[i]
		switch {
		case ch == '\\':
			r, n := unescape(raw[i:])
			dst = appendRune(dst, r)
			i += n
		case ch >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(raw[i:])
			dst = appendRune(dst, r)
			i += n
		default:
			dst = appendRune(dst, rune(ch))
			i++
		}
	}
	return dst
}

func appendRune(dst []byte, r rune) []byte {
	if r == 0 {
		r = utf8.RuneError
	}
	return utf8.AppendRune(dst, r)
}

// unescape returns the character of the escape at the start of b and its length;
// two escapes of a surrogate pair are one character.
func unescape(b []byte) (r rune, n int) {
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeUnit(b)
	}
	return rune(b[1]), 2
}

func unescapeUnit(b []byte) (r rune, n int) {
	r, _ = hex4(b)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := hex4(b[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

// cut shortens b to at most n bytes without cutting a character in two.
func cut(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

// messageBytes bounds the message of a failure.
const messageBytes = 512

// firstLine returns the first line of an exception that says anything, bounded
// and free of control characters.
func firstLine(text []byte) string {
	text = bytes.TrimSpace(text)
	if i := bytes.IndexAny(text, "\n\r"); i >= 0 {
		text = text[:i]
	}
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r <= 0x9f) {
			return ' '
		}
		return r
	}, string(cut(text, messageBytes)))
	return strings.TrimSpace(clean)
}
