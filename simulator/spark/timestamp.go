package spark

// AppendTime appends Unix milliseconds as Spark's timestamps have them:
// 2026-03-02T00:00:00.000Z, always with milliseconds, in UTC. Years run from
// 0000 to 9999.
func AppendTime(dst []byte, unixMs int64) []byte {
	dst = appendSeconds(dst, unixMs)
	ms := mod(unixMs, 1000)
	return append(dst, '.', digit(ms/100), digit(ms/10%10), digit(ms%10), 'Z')
}

// AppendInstant appends Unix milliseconds as Java's Instant prints them: like
// AppendTime, but whole seconds have no fraction.
func AppendInstant(dst []byte, unixMs int64) []byte {
	if mod(unixMs, 1000) != 0 {
		return AppendTime(dst, unixMs)
	}
	return append(appendSeconds(dst, unixMs), 'Z')
}

const dayMs = 24 * 60 * 60 * 1000

// appendSeconds appends date and time of day without a fraction. time.Time does
// the same at three times the cost, and copies of queries need many.
func appendSeconds(dst []byte, unixMs int64) []byte {
	days := (unixMs - mod(unixMs, dayMs)) / dayMs
	s := mod(unixMs, dayMs) / 1000
	y, m, d := civil(days)
	return append(dst,
		digit(y/1000), digit(y/100%10), digit(y/10%10), digit(y%10), '-', digit(m/10), digit(m%10), '-', digit(d/10), digit(d%10), 'T',
		digit(s/36000), digit(s/3600%10), ':', digit(s/600%6), digit(s/60%10), ':', digit(s/10%6), digit(s%10))
}

// civil turns days since 1970 into a date of the Gregorian calendar, by counting
// years from March so that the leap day comes last.
func civil(days int64) (y, m, d int64) {
	days += 719468
	era := (days - mod(days, 146097)) / 146097
	doe := mod(days, 146097)
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = doy - (153*mp+2)/5 + 1
	m = mp + 3
	if m > 12 {
		m -= 12
	}
	y = yoe + era*400
	if m <= 2 {
		y++
	}
	return y, m, d
}

func mod(a, b int64) int64 {
	if r := a % b; r < 0 {
		return r + b
	}
	return a % b
}

func digit(n int64) byte { return byte('0' + n%10) }
