package decode

import "github.com/stategauge/stategauge/event"

// isoLength is the length of the form that Spark itself writes:
// 2006-01-02T15:04:05.000Z.
const isoLength = 24

// parseISO reads the 24-byte form that Spark writes, in UTC with milliseconds.
func parseISO(b []byte) (ms int64, ok bool) {
	if len(b) < isoLength || b[19] != '.' || b[23] != 'Z' {
		return 0, false
	}
	sec, ok := parseDateTime(b)
	if !ok {
		return 0, false
	}
	frac, ok := digits(b[20:23])
	return sec*1000 + frac, ok
}

// parseDateTime reads 2006-01-02T15:04:05 as Unix seconds in UTC; a blank may
// stand for the T.
func parseDateTime(b []byte) (sec int64, ok bool) {
	if len(b) < 19 || b[4] != '-' || b[7] != '-' || (b[10] != 'T' && b[10] != ' ') || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	var bad uint
	two := func(i int) int64 {
		hi, lo := uint(b[i]-'0'), uint(b[i+1]-'0')
		if hi > 9 || lo > 9 {
			bad = 1
		}
		return int64(hi*10 + lo)
	}
	year := two(0)*100 + two(2)
	month, day := two(5), two(8)
	hour, minute, second := two(11), two(14), two(17)
	if bad != 0 || month < 1 || month > 12 || day < 1 || day > monthDays(year, month) || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	return daysSinceEpoch(year, month, day)*86400 + hour*3600 + minute*60 + second, true
}

func monthDays(year, month int64) int64 {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysSinceEpoch counts days of the Gregorian calendar in eras of 400 years whose
// years begin in March, so that the leap day comes last.
func daysSinceEpoch(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	year += 400 // keeps the divisions below positive for the year 0
	era := year / 400
	yoe := year - era*400
	doy := (153*(month-3)+2)/5 + day - 1
	return (era-1)*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// parseTime reads any time that senders write: ISO 8601 with or without a
// fraction and with Z, an offset or nothing (UTC) behind it, or epoch
// milliseconds. It returns event.Absent for anything else.
func parseTime(b []byte) int64 {
	if ms, ok := parseISO(b); ok && len(b) == isoLength {
		return ms
	}
	sec, ok := parseDateTime(b)
	if !ok {
		return epochMillis(b)
	}
	frac, rest, ok := fraction(b[19:])
	if !ok {
		return event.Absent
	}
	off, ok := zoneOffset(rest)
	if !ok {
		return event.Absent
	}
	return (sec-off)*1000 + frac
}

func epochMillis(b []byte) int64 {
	n, end := parseInt(b, 0)
	if end == 0 || end != len(b) {
		return event.Absent
	}
	return n
}

// fraction reads an optional decimal fraction of a second as milliseconds, cut
// behind the third digit, and returns what follows it.
func fraction(b []byte) (ms int64, rest []byte, ok bool) {
	if len(b) == 0 || (b[0] != '.' && b[0] != ',') {
		return 0, b, true
	}
	i, scale := 1, int64(100)
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		ms += int64(b[i]-'0') * scale
		scale /= 10
	}
	return ms, b[i:], i > 1
}

// zoneOffset reads Z, +01:00, +0100, +01 or nothing as seconds east of UTC.
func zoneOffset(b []byte) (sec int64, ok bool) {
	if len(b) == 0 || (len(b) == 1 && b[0]|0x20 == 'z') {
		return 0, true
	}
	if b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	clock := b[1:]
	if len(clock) == 5 && clock[2] == ':' {
		clock = []byte{clock[0], clock[1], clock[3], clock[4]}
	}
	n, ok := digits(clock)
	switch {
	case !ok:
		return 0, false
	case len(clock) == 4:
		sec = n/100*3600 + n%100*60
	case len(clock) == 2:
		sec = n * 3600
	default:
		return 0, false
	}
	if b[0] == '-' {
		sec = -sec
	}
	return sec, true
}

// digits reads b as a decimal number of few digits.
func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0 && len(b) <= exactDigits
}
