package spark

import (
	"strings"

	"github.com/stategauge/stategauge/event"
)

// stack writes frames as Java prints them. The classes of the running query
// moved into a package of their own in 4.1.
func stack(frames []string, v event.Version) string {
	var b strings.Builder
	for _, frame := range frames {
		if AtLeast(v, V41) {
			frame = strings.ReplaceAll(frame, "execution.streaming.", "execution.streaming.runtime.")
			frame = strings.ReplaceAll(frame, "streaming.runtime.state.", "streaming.state.")
		}
		b.WriteString("\tat " + frame + "\n")
	}
	return b.String()
}

// Frames from the inside out, as running queries showed them; shortened to what
// tells where they come from.
var (
	userFrames = []string{
		"com.example.orders.Prices$.check(Prices.scala:41)",
		"com.example.orders.Enrich$.$anonfun$apply$3(Enrich.scala:88)",
		"org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage2.processNext(Unknown Source)",
		"org.apache.spark.sql.execution.BufferedRowIterator.hasNext(BufferedRowIterator.java:43)",
		"org.apache.spark.shuffle.sort.BypassMergeSortShuffleWriter.write(BypassMergeSortShuffleWriter.java:143)",
	}
	stateFrames = []string{
		"org.apache.spark.sql.catalyst.expressions.UnsafeRow.copy(UnsafeRow.java:520)",
		"org.apache.spark.sql.execution.streaming.state.RocksDBStateEncoder.decodeValue(RocksDBStateEncoder.scala:180)",
		"org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider$RocksDBStateStore.get(RocksDBStateStoreProvider.scala:147)",
	}
	loadFrames = []string{
		"org.apache.spark.sql.errors.QueryExecutionErrors$.cannotLoadStore(QueryExecutionErrors.scala:2184)",
		"org.apache.spark.sql.execution.streaming.state.RocksDBFileManager.loadCheckpointFromDfs(RocksDBFileManager.scala:295)",
		"org.apache.spark.sql.execution.streaming.state.RocksDB.load(RocksDB.scala:402)",
		"org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider.getStore(RocksDBStateStoreProvider.scala:365)",
		"org.apache.spark.sql.execution.streaming.state.StateStore$.get(StateStore.scala:706)",
	}
	taskFrames = []string{
		"org.apache.spark.scheduler.Task.run(Task.scala:147)",
		"org.apache.spark.executor.Executor$TaskRunner.$anonfun$run$5(Executor.scala:647)",
		"org.apache.spark.util.Utils$.tryWithSafeFinally(Utils.scala:99)",
		"org.apache.spark.executor.Executor$TaskRunner.run(Executor.scala:650)",
		"java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)",
		"java.base/java.util.concurrent.ThreadPoolExecutor$Worker.run(ThreadPoolExecutor.java:635)",
		"java.base/java.lang.Thread.run(Thread.java:840)",
	}
	schedulerFrames = []string{
		"org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:2935)",
		"org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2927)",
		"org.apache.spark.scheduler.DAGSchedulerEventProcessLoop.onReceive(DAGScheduler.scala:3130)",
		"org.apache.spark.util.EventLoop$$anon$1.run(EventLoop.scala:50)",
		"org.apache.spark.SparkContext.runJob(SparkContext.scala:2484)",
	}
	logFrames = []string{
		"org.apache.spark.sql.errors.QueryExecutionErrors$.concurrentStreamLogUpdate(QueryExecutionErrors.scala:1318)",
		"org.apache.spark.sql.execution.streaming.MicroBatchExecution.markMicroBatchEnd(MicroBatchExecution.scala:1611)",
	}
	kafkaFrames = []string{
		"org.apache.spark.sql.kafka010.KafkaExceptions$.startOffsetReset(KafkaExceptions.scala:73)",
		"org.apache.spark.sql.kafka010.KafkaMicroBatchStream.planInputPartitions(KafkaMicroBatchStream.scala:255)",
		"org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec.inputPartitions(MicroBatchScanExec.scala:46)",
	}
	batchSinkFrames = []string{
		"org.apache.spark.sql.execution.streaming.StreamExecution.awaitTermination(StreamExecution.scala:515)",
		"org.apache.spark.sql.execution.streaming.ForeachBatchSink.addBatch(ForeachBatchSink.scala:49)",
	}
	startFrames = []string{
		"org.apache.spark.sql.execution.streaming.StreamExecution.<init>(StreamExecution.scala:171)",
	}
	batchFrames = []string{
		"org.apache.spark.sql.execution.streaming.MicroBatchExecution.runBatch(MicroBatchExecution.scala:891)",
		"org.apache.spark.sql.execution.streaming.MicroBatchExecution.executeOneBatch(MicroBatchExecution.scala:364)",
		"org.apache.spark.sql.execution.streaming.MicroBatchExecution.runActivatedStream(MicroBatchExecution.scala:344)",
		"org.apache.spark.sql.execution.streaming.StreamExecution.$anonfun$runStream$1(StreamExecution.scala:337)",
		"org.apache.spark.sql.SparkSession.withActive(SparkSession.scala:804)",
		"org.apache.spark.sql.execution.streaming.StreamExecution$$anon$1.run(StreamExecution.scala:226)",
	}
)
