package filesource

import "context"

// Split returns one Source for each log behind the paths, in the order in which
// Run would read them: a file, standard input, or all parts of a rolling event
// log. Whoever wants the events of several logs in the order of their times runs
// them side by side. What of the paths cannot be listed is the error; the Sources
// of the rest come with it.
func (s *Source) Split(ctx context.Context) ([]*Source, error) {
	files, err := s.list(ctx)
	var out []*Source
	for _, f := range files {
		if f.first || len(out) == 0 {
			out = append(out, &Source{cfg: s.cfg, only: []listed{}})
		}
		last := out[len(out)-1]
		last.only = append(last.only, f)
	}
	return out, err
}

// WithStepEvents returns the Source with another Config.StepEvents: whoever runs
// many side by side wants each to read less ahead.
func (s *Source) WithStepEvents(n int) *Source {
	c := *s
	c.cfg.StepEvents = n
	return &c
}
