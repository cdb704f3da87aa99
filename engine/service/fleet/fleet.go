// SPDX-License-Identifier: Apache-2.0

// Package fleet spreads requests about stacks over many machines. NATS JetStream carries
// them, and does all electing, replicating and storing.
//
// A job is a message of the work-queue stream of its priority, whose subject has its ID. The
// ID is a digest of the task and its input, so that a job submitted twice is one job. A
// small input is in the message, a large one in an object store by its SHA-256; code objects
// are in another store by build ID. A result is the only message of its subject: the first
// one stays, and a worker that comes later with another finds it there. The job is
// acknowledged after that. So each job has exactly one result, however often it was done,
// and whatever died.
//
// Subjects have the version of their messages. A worker takes messages of versions that it
// knows, and leaves newer ones to newer workers.
//
// Who may use JetStream himself is trusted, as workers are: he could store any result. Any other
// user of the servers asks a desk, which a worker has, and which does for him what he may. His
// jobs, results and files are in streams of his own, with their own bounds.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Streams and stores, as the tools of NATS show them.
const (
	jobsStream    = "UNWINDD_JOBS_" // and a priority
	resultsStream = "UNWINDD_RESULTS"
	triesBucket   = "UNWINDD_TRIES"   // the tries of jobs that were begun and not done
	inputsBucket  = "UNWINDD_INPUTS"  // by SHA-256
	objectsBucket = "UNWINDD_OBJECTS" // code objects and debug information, by build ID
	reportsBucket = "UNWINDD_REPORTS" // by SHA-256
)

// Subjects. An ID follows each but the first, which has a priority before it.
const (
	jobsPrefix    = "unwindd.job.v1."
	resultsPrefix = "unwindd.result.v1."
	// These messages are not stored: a subscriber that misses one looks again a moment
	// later.
	donePrefix   = "unwindd.done.v1."   // a job has a result, which is in the message where it is small
	cancelPrefix = "unwindd.cancel.v1." // a job was canceled
	wakeSubject  = "unwindd.wake.v1"    // there is a job
)

// Priorities are the priorities of jobs, the highest first.
var Priorities = []string{"high", "normal", "low"}

// jobsOf returns the stream of a priority. Each has its own, since a server that takes a
// message by subject looks at all subjects of the stream.
func jobsOf(priority string) string { return jobsStream + strings.ToUpper(priority) }

// Options tell how to reach the queue, and how the first to connect makes it.
type Options struct {
	// URL is nats://HOST:PORT or tls://HOST:PORT, several with commas between them.
	URL string
	// Credentials is a file of NATS with a user's JWT and key; CA, Certificate and Key are
	// files of TLS. "": none.
	Credentials, CA, Certificate, Key string
	// Server is a server of this process, instead of URL; nil: none.
	Server Server
	// Name is the name of the connection in the server's lists.
	Name string
	Keep
	// Patience bounds the time until the queue is there; 0: 10 seconds, or a minute where the
	// server is in this process.
	Patience time.Duration
	// Log gets a sentence about each failure that is tried again; nil: nothing is logged.
	Log func(text string)
}

// Keep tells how much is stored, how long, and in how many copies. Only the first to
// connect, who makes the queue, uses it.
type Keep struct {
	Replicas int           // servers that store a copy of everything; 0: 1
	Time     time.Duration // for which inputs, results and reports are stored; 0: 7 days
	// Bytes bounds all of it, and as much that of each user who asks a desk; 0: 8 GiB, or three
	// quarters of the size of this process's server. NATS reserves them.
	Bytes int64
}

const (
	usualTime  = 7 * 24 * time.Hour
	usualBytes = 8 << 30
)

// resolved returns the Keep with its defaults.
func (o *Options) resolved() Keep {
	k := o.Keep
	k.Replicas, k.Time = max(k.Replicas, 1), cmp.Or(k.Time, usualTime)
	if k.Bytes == 0 {
		k.Bytes = usualBytes
		if o.Server != nil {
			k.Bytes = min(k.Bytes, o.Server.MaxStore()/4*3)
		}
	}
	return k
}

// shares are the parts, in 32ths of all bytes, of each stream and store.
var shares = map[string]int64{jobsOf("high"): 1, jobsOf("normal"): 4, jobsOf("low"): 1, resultsStream: 4, inputsBucket: 10, objectsBucket: 8, reportsBucket: 3, triesBucket: 1}

// share returns the bound of a stream or a store, in bytes.
func (k *Keep) share(name string) int64 { return k.Bytes / 32 * shares[name] }

// Queue is a connection to the servers that carry jobs. It may be used concurrently.
type Queue struct {
	Options
	conn *nats.Conn
	js   jetstream.JetStream

	jobs                     map[string]jetstream.Stream // by priority
	results                  jetstream.Stream
	inputs, objects, reports jetstream.ObjectStore
	tries                    jetstream.KeyValue

	// user has these streams; "": they are the account's, for users with all permissions.
	user string
	// desk does what the user may not do himself; nil: he may.
	desk *client

	refusals refusals
	others   *userQueues // by the user whose streams they are
}

// ErrNoQueue is wrapped by the error of a server that does not answer.
var ErrNoQueue = errors.New("the queue does not answer")

// ErrRefused is wrapped by the error of a server that does not let the user in, or denies a
// permission that a queue needs.
var ErrRefused = errors.New("the queue refuses this user")

// oldestServer is the oldest version of nats-server with the features of a queue: subjects
// that refuse a second message, and messages that every server of a cluster can return.
var oldestServer = [2]int{2, 9}

var errServer = errors.New("the server cannot have a queue")

// checkVersion refuses a server that is too old. Older ones take a second result of a job, and
// lose the first.
func checkVersion(version string) error {
	var v [2]int
	if _, err := fmt.Sscanf(version, "%d.%d.", &v[0], &v[1]); err != nil {
		return fmt.Errorf("%w: its version is %.100q, expected one of nats-server", errServer, version)
	}
	if slices.Compare(v[:], oldestServer[:]) < 0 {
		return fmt.Errorf("%w: it is nats-server %s, expected %d.%d.0 or later", errServer, version, oldestServer[0], oldestServer[1])
	}
	return nil
}

// Connect reaches the queue, and makes the streams and stores that are missing. The error wraps
// ErrRefused where the user may not do that, ErrFull where the server is full, and ErrNoQueue
// where no server answers.
func Connect(ctx context.Context, o Options) (*Queue, error) {
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
		if o.Server != nil {
			o.Patience = StartPatience // the others of a cluster may be started later
		}
	}
	o.Keep = o.resolved()
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	q := &Queue{Options: o, others: &userQueues{known: map[string]*Queue{}}}
	err := q.guard(ctx, q.connect)
	if errors.Is(err, ErrRefused) && q.conn != nil {
		err = q.guard(ctx, q.useDesk)
	}
	if err == nil {
		return q, nil
	}
	if isRefused(err) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if q.conn != nil {
		q.Close()
	}
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrFull) || errors.Is(err, errServer) { // that is an answer
		return nil, fmt.Errorf("%s: %w", o.Place(), err)
	}
	return nil, fmt.Errorf("%w: %s: %w", ErrNoQueue, o.Place(), err)
}

// isRefused reports whether a server did not let the user in.
func isRefused(err error) bool {
	return slices.ContainsFunc([]error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired}, func(one error) bool {
		return errors.Is(err, one)
	})
}

// connect reaches the server, and makes the streams and stores that are missing. It waits as
// long as errors are temporary: starting servers of a cluster elect a leader first.
func (q *Queue) connect(ctx context.Context) (err error) {
	if q.conn, err = nats.Connect(q.URL, q.connectOptions()...); err != nil {
		return err
	}
	if err := checkVersion(q.conn.ConnectedServerVersion()); err != nil {
		return err
	}
	if q.js, err = jetstream.New(q.conn, jetstream.WithDefaultTimeout(ackPatience)); err != nil {
		return err
	}
	for {
		if err = q.makeSoon(ctx); err == nil || !isPassing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lookAtCluster):
		}
	}
}

// makeSoon is make with a time limit: a cluster that had no leader when it was asked never
// answers, also not once it has one.
func (q *Queue) makeSoon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	return q.make(ctx)
}

// ackPatience bounds the time of the answer to a request: an answer that was lost with a
// server never comes.
const ackPatience = 10 * time.Second

// answerPatience bounds the time in which the server lists its streams and stores, and
// makes the rest.
const answerPatience = 3 * time.Second

// lookAtCluster is the interval of asking starting servers whether they are ready.
const lookAtCluster = 200 * time.Millisecond

// codeNoPeers is JetStream's code for a cluster with too few servers.
const codeNoPeers = 10005

// isPassing reports whether an error is temporary.
func isPassing(err error) bool {
	var e *jetstream.APIError
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another makes it
		return true
	}
	if !errors.As(err, &e) || e.ErrorCode == jetstream.JSErrCodeJetStreamNotEnabled || e.ErrorCode == jetstream.JSErrCodeJetStreamNotEnabledForAccount {
		return false
	}
	return e.Code == 503 || e.ErrorCode == codeNoPeers
}

// Place returns the place of the server, for messages: without the secrets of a URL.
func (o *Options) Place() string {
	if o.Server != nil {
		return "the server in this process"
	}
	return withoutSecrets(o.URL)
}

func (q *Queue) connectOptions() []nats.Option {
	list := []nats.Option{
		nats.Name(q.Name), nats.Timeout(q.Patience), nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond),
		nats.ReconnectJitter(500*time.Millisecond, time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				q.say("the connection to the queue ended: %v", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				q.refusals.tell(fmt.Errorf("%w: %w", ErrRefused, err)) // no answer will come
				return
			}
			q.say("queue: %v", err)
		}),
	}
	if q.Server != nil {
		list = append(list, q.Server.ConnectOptions()...)
	}
	if name := q.userName(); name != "" {
		list = append(list, nats.CustomInboxPrefix(inboxOf(word(name))))
	}
	if q.Credentials != "" {
		list = append(list, nats.UserCredentials(q.Credentials))
	}
	if q.CA != "" {
		list = append(list, nats.RootCAs(q.CA))
	}
	if q.Certificate != "" {
		list = append(list, nats.ClientCert(q.Certificate, q.Key))
	}
	return list
}

func (q *Queue) say(format string, args ...any) {
	if q.Log != nil {
		q.Log(fmt.Sprintf(format, args...))
	}
}

// IsConnected reports whether a server is reached now.
func (q *Queue) IsConnected() bool { return q.conn.IsConnected() }

// Close ends the connection.
func (q *Queue) Close() { q.conn.Close() }

// make makes the missing streams and stores. Existing ones stay as they are: others use
// them.
func (q *Queue) make(ctx context.Context) (err error) {
	q.jobs = map[string]jetstream.Stream{}
	for _, p := range Priorities {
		q.jobs[p], err = q.stream(ctx, jetstream.StreamConfig{
			Name: q.named(jobsOf(p)), Subjects: []string{q.subject(jobsPrefix) + p + ".*"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
			// A job that waits already is not taken a second time.
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
			MaxBytes: q.share(jobsOf(p)), Replicas: q.Replicas, AllowDirect: true,
		})
		if err != nil {
			return err
		}
	}
	q.results, err = q.stream(ctx, jetstream.StreamConfig{
		Name: q.named(resultsStream), Subjects: []string{q.subject(resultsPrefix) + "*"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		// A job has one result.
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		MaxBytes: q.share(resultsStream), MaxAge: q.Time, Replicas: q.Replicas, AllowDirect: true, Compression: jetstream.S2Compression,
	})
	if err != nil {
		return err
	}
	for _, b := range []struct {
		store *jetstream.ObjectStore
		name  string
	}{{&q.inputs, inputsBucket}, {&q.objects, objectsBucket}, {&q.reports, reportsBucket}} {
		name := q.named(b.name)
		*b.store, err = q.js.ObjectStore(ctx, name)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			*b.store, err = q.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
				Bucket: name, TTL: q.Time, MaxBytes: q.share(b.name), Storage: jetstream.FileStorage, Replicas: q.Replicas, Compression: true,
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, full(err))
		}
	}
	name := q.named(triesBucket)
	q.tries, err = q.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		q.tries, err = q.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, TTL: q.Time, History: 1, MaxBytes: q.share(triesBucket), Storage: jetstream.FileStorage, Replicas: q.Replicas,
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, full(err))
	}
	return nil
}

// stream finds a stream, or makes it.
func (q *Queue) stream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := q.js.Stream(ctx, c.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = q.js.CreateStream(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, full(err))
	}
	return s, nil
}
