package decode

// Limits bound what one event may cost. A zero field takes its default.
type Limits struct {
	EventBytes    int // bytes of one element; more is refused as too_large
	KeysPerEvent  int // object members in one element, partitions inside offsets not counted; more is refused as too_many
	Operators     int // state operators of one batch; more is refused as too_many
	Sources       int // sources of one batch; more is refused as too_many
	Depth         int // nested objects and arrays in one element; more is refused as depth
	UnknownKeys   int // metrics outside the catalog kept per event; the rest is counted in Stats.UnknownDropped
	StringBytes   int // a longer query or run id is refused as too_large, any other string is cut
	RejectsInRow  int // broken elements one after another in one body; the rest is then refused at once as too_many
	TemplateBytes int // memory of the shape cache, all queries together; negative switches it off
	InternBytes   int // memory of the table of strings, all queries together
}

// DefaultLimits returns limits that the largest known real events keep well below.
func DefaultLimits() Limits {
	return Limits{
		EventBytes:    1 << 20,
		KeysPerEvent:  4096,
		Operators:     128,
		Sources:       256,
		Depth:         32,
		UnknownKeys:   256,
		StringBytes:   4096,
		RejectsInRow:  4096,
		TemplateBytes: 32 << 20,
		InternBytes:   16 << 20,
	}
}

// withDefaults fills the fields that are 0.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ have, def *int }{
		{&l.EventBytes, &d.EventBytes},
		{&l.KeysPerEvent, &d.KeysPerEvent},
		{&l.Operators, &d.Operators},
		{&l.Sources, &d.Sources},
		{&l.Depth, &d.Depth},
		{&l.UnknownKeys, &d.UnknownKeys},
		{&l.StringBytes, &d.StringBytes},
		{&l.RejectsInRow, &d.RejectsInRow},
		{&l.TemplateBytes, &d.TemplateBytes},
		{&l.InternBytes, &d.InternBytes},
	} {
		if *f.have == 0 {
			*f.have = *f.def
		}
	}
	return l
}
