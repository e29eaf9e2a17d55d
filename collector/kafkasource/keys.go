package kafkasource

// noteKeys counts the messages without a key that are news. They are spread over
// the partitions of a topic, and so over the members of a group: each of those then
// sees a part of every query. That is told once a topic, where it has several
// partitions.
func (s *Source) noteKeys(w *worker, msgs []message) {
	n, live := 0, w.live.Load()
	for i := range msgs {
		if msgs[i].keyless && !msgs[i].control && msgs[i].offset >= live {
			n++
		}
	}
	if n == 0 {
		return
	}
	topic := w.partition.topic
	s.metrics.Keyless.WithLabelValues(topic).Add(float64(n))
	s.mu.Lock()
	told := s.keyless[topic] || s.topology.counts[topic] < 2
	if !told {
		s.keyless[topic] = true
	}
	s.mu.Unlock()
	if !told {
		s.log.Warn("kafka messages have no key, so events of one query lie in several partitions: "+
			"daemons that share the topic each see a part of it; let the sender use the query id as key", "topic", topic)
	}
}
