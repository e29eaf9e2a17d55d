package salvage

import (
	"fmt"

	"github.com/stategauge/stategauge/collector"
)

// push opens a container.
func (p *parser) push(kind byte, line int) bool {
	if len(p.stack) >= p.lim.Depth {
		p.fault = fault{collector.ReasonDepth, fmt.Sprintf("line %d: nested deeper than %d levels", line, p.lim.Depth), false}
		return false
	}
	f := frame{kind: kind, want: wantValue, start: len(p.out), line: line, repaired: p.repaired}
	b := byte('[')
	if kind == '{' {
		f.want, b = wantKey, '{'
	}
	p.out = append(p.out, b)
	p.stack = append(p.stack, f)
	return true
}

func (p *parser) openValue(c byte) bool {
	if len(p.stack) > 0 && !p.beginValue() {
		return false
	}
	return p.push(c, p.line)
}

// beginValue prepares the output for a value and tells whether one may stand here.
func (p *parser) beginValue() bool {
	f := p.top()
	switch {
	case f.row:
		if !f.named {
			return false
		}
		f.named = false
	case f.want == wantValue:
	case f.want == wantMore && f.kind != '{' && p.newline:
		p.repaired++
	case p.lenient():
	default:
		return false
	}
	if f.kind != '{' && f.n > 0 && !f.row {
		p.out = append(p.out, ',')
	}
	f.valueAt = len(p.out)
	p.valueStr = false
	return true
}

func (p *parser) endValue() {
	f := p.top()
	f.n++
	f.want = wantMore
	f.trailing = false
	if f.key == kEventType {
		f.event = eventTypeOf(p.out[f.valueAt:])
	}
}

func (p *parser) comma() bool {
	f := p.top()
	if f.want != wantMore {
		return p.lenient()
	}
	f.trailing = true
	f.want = wantValue
	if f.kind == '{' {
		f.want = wantKey
	}
	return true
}

func (p *parser) colon() bool {
	f := p.top()
	if f.kind != '{' || f.want != wantColon {
		return false
	}
	if p.next >= 0 {
		if !p.nextBreak && !p.lenient() {
			return false
		}
		p.repaired++
		p.next = -1
		p.noteKey(f.keyAt)
	}
	p.out = append(p.out, ':')
	f.want = wantValue
	f.valueAt = len(p.out)
	return true
}

// closeValue closes the innermost container.
func (p *parser) closeValue(c byte) bool {
	f := p.top()
	if p.fragment && len(p.stack) == 1 && (c != '}' || !f.keys.has(kID)) {
		p.loose = true // the end of a container that began before the text
		f.want = wantMore
		return true
	}
	if closer(f.kind) != string(c) || !p.mayClose(f) {
		return false
	}
	if f.trailing && f.kind != 'c' && f.kind != '(' {
		p.repaired++
	}
	if p.fragment && len(p.stack) == 1 {
		p.repaired++
	}
	p.pop()
	return true
}

func (p *parser) mayClose(f *frame) bool {
	empty := f.n == 0 && (f.want == wantKey || f.want == wantValue && f.kind != '{')
	return !f.named && (f.want == wantMore || f.trailing && f.want != wantColon || empty) || p.lenient()
}

// pop writes the end of the innermost container and judges it.
func (p *parser) pop() {
	f := *p.top()
	p.stack = p.stack[:len(p.stack)-1]
	switch f.kind {
	case '{':
		p.out = append(p.out, '}')
		p.judge(&f)
	case 'c':
		p.closeCall(&f)
	default:
		p.out = append(p.out, ']')
		p.judgeList(&f)
	}
	if len(p.stack) > 0 {
		p.endValue()
		return
	}
	p.outer, p.foreign = f.keys, f.event == otherEvent
}

// closeCall turns UUID('x') into "x", Row(a=1) into an object, datetime(2024, 5, 1)
// into a list and a call without arguments into null.
func (p *parser) closeCall(f *frame) {
	switch {
	case f.row:
		p.out = append(p.out, '}')
	case f.n == 0:
		p.out = append(p.out[:f.start], "null"...)
	case f.n == 1:
		p.out = append(p.out[:f.start], p.out[f.start+1:]...)
		p.shift(f.start)
	default:
		p.out = append(p.out, ']')
	}
}
