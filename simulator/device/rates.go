package device

// rates is how one step is charged, in nanoseconds.
type rates struct {
	base, row, op   float64 // CPU: per call, Rows, Ops
	byteIn, byteOut float64 // CPU
	code            bool    // rows are the user's code as well
	diskIn, diskOut float64 // disk: per byte
	file, miss      float64 // disk: per Files, CacheMisses
	call            float64 // disk: per call
	entry           float64 // CPU: per Files listed
	remote          func(n *Node, w Work) float64
}

func (r *rates) cpu(w Work) float64 {
	return r.base + r.row*float64(w.Rows) + r.op*float64(w.Ops) +
		r.byteIn*float64(w.BytesIn) + r.byteOut*float64(w.BytesOut) + r.entry*float64(w.Files)
}

func (r *rates) disk(w Work) float64 {
	return r.call + r.diskIn*float64(w.BytesIn) + r.diskOut*float64(w.BytesOut) +
		r.file*float64(w.Files) + r.miss*float64(w.CacheMisses)
}

// rates is the price list of the model.
func (m *Model) rates() [NumSteps]rates {
	diskByte := 1e9 / m.DiskBytesPerSecond
	sst := float64(m.SSTByte) / 1000
	fsync, miss := float64(m.Fsync), float64(m.DiskRead)
	merge := rates{byteIn: sst / 2, byteOut: sst / 2, diskIn: diskByte, diskOut: diskByte, file: fsync, miss: miss}
	return [NumSteps]rates{
		StepGet:        {op: float64(m.Get), miss: miss},
		StepPut:        {op: float64(m.Put)},
		StepScan:       {op: float64(m.ScanStep), miss: miss},
		StepCode:       {row: float64(m.Row + m.UserRow), code: true},
		StepHeap:       {op: float64(m.HeapOp)},
		StepWriteBatch: {op: float64(m.BatchWrite), call: fsync},
		StepFlush:      {base: float64(m.FlushBase), byteOut: sst, diskOut: diskByte, file: fsync},
		StepCompact:    merge,
		StepBackground: merge,
		StepCheckpoint: {call: fsync, file: float64(m.Link)},
		StepZip:        {byteIn: float64(m.ZipByte) / 1000},
		StepUpload:     {remote: storeRequests},
		StepChangelog:  {remote: storeRequests},
		StepDownload:   {remote: storeRequests},
		StepOpen:       {base: float64(m.StoreOpen), file: float64(m.Link)},
		StepReplay:     {op: float64(m.Replay), remote: storeRequests},
		StepList:       {entry: float64(m.ListEntry), remote: storeList},
		StepLog:        {remote: storeRequests},
		StepSourceList: {entry: float64(m.ListEntry), remote: sourceAsk},
		StepSourceRead: {row: float64(m.ReadRow), remote: sourceRead},
		StepPlan:       {base: float64(m.PlanBase), op: float64(m.PlanOperator)},
		StepSchedule:   {base: float64(m.TaskLaunch)},
		StepShuffle:    {row: float64(m.ShuffleRow), remote: shuffle},
		StepSink:       {row: float64(m.SinkRow), remote: sinkWrite},
	}
}

// storeRequests is requests to the checkpoint store and the bytes on their way.
func storeRequests(n *Node, w Work) float64 {
	c := &n.conditions
	t := n.requests(w.Requests, float64(n.model.StoreLatency)*c.StoreLatency, c.StoreThrottled)
	return t + float64(w.RemoteIn+w.RemoteOut)*1e9/n.model.StoreBytesPerSecond*c.StoreThroughput
}

// storeList is listings of it: slow with the store, and of their own.
func storeList(n *Node, w Work) float64 {
	c := &n.conditions
	median := float64(n.model.StoreLatency) * n.model.ListFactor * c.StoreLatency * c.ListLatency
	return n.requests(w.Requests, median, c.StoreThrottled)
}

// sourceAsk is questions to brokers, or listings where there are files.
func sourceAsk(n *Node, w Work) float64 {
	median := float64(n.model.SourceLatency)
	if w.Files > 0 {
		median = float64(n.model.StoreLatency) * n.model.ListFactor
	}
	return n.requests(w.Requests, median*n.conditions.SourceLatency, 0)
}

// sourceRead fetches in the background while rows are decoded; the network is
// what remains of it.
func sourceRead(n *Node, w Work) float64 {
	return n.network(w.RemoteIn)
}

func shuffle(n *Node, w Work) float64 { return n.network(w.BytesIn) }

func (n *Node) network(bytes int64) float64 {
	return float64(bytes) * 1e9 / n.model.NetworkBytesPerSecond * n.conditions.Network
}

// sinkWrite is requests to where output goes, which has nothing to do with the
// checkpoint's troubles.
func sinkWrite(n *Node, w Work) float64 {
	return n.requests(w.Requests, float64(n.model.StoreLatency), 0)
}
