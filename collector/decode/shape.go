package decode

// shapeCache placeholder
type shapeCache struct{}

func newShapeCache(int) *shapeCache { return &shapeCache{} }
func (s *shapeCache) stats() Stats { return Stats{} }
