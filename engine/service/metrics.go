// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/bounded"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
)

// metrics are the figures that Prometheus reads at /metrics.
type metrics struct {
	registry    *prometheus.Registry
	turn        sync.Mutex // to make figures
	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	waits       prometheus.Histogram
	bytes       *prometheus.CounterVec
	workers     *prometheus.CounterVec
	connections *prometheus.CounterVec
	denials     *prometheus.CounterVec
	stacks      *prometheus.CounterVec
	frames      *prometheus.CounterVec
	stops       *prometheus.CounterVec
	lookups     *prometheus.CounterVec
	plugins     *prometheus.CounterVec
	handed      *prometheus.CounterVec // of a server with a fleet, like shares
	shares      *prometheus.CounterVec
	profiles    *prometheus.CounterVec // of a server with a collector, like passing
	naming      *prometheus.CounterVec // frames
	passing     *prometheus.HistogramVec
	provided    *prometheus.CounterVec
	callers     callerFigures
}

// durations are the histogram bounds of requests, in seconds.
var durations = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

// eventNames are the names of events of workers.
var eventNames = map[worker.EventKind]string{
	worker.Started: "started", worker.Died: "died", worker.Stopped: "stopped", worker.Replaced: "replaced",
}

func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "unwindd", Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "unwindd", Name: name, Help: help}, value))
	}
	m.requests = counter("requests_total", "Requests that were answered, by what they asked for and how they ended.", "kind", "status")
	m.bytes = counter("bytes_total", "Bytes of bodies and reports.", "direction")
	m.connections = counter("connections_total", "Connections that were taken, those of them that were given up while they waited for a request, and those for which there was no place.", "event")
	m.denials = counter("denials_total", "How often a caller wanted more of something than was there, or than its share.", "of")
	m.workers = counter("workers_total", "Processes that read requests, by what became of them.", "event")
	m.stacks = counter("stacks_total", "Stacks that were written.", "kind")
	m.frames = counter("frames_total", "Frames of stacks, by how they were found.", "found_by")
	m.stops = counter("stops_total", "Stacks, by why they end.", "reason")
	m.lookups = counter("cache_lookups_total", "What was looked up: code objects that workers know already, and files of the store of objects.", "cache", "result")
	m.plugins = counter("plugin_processes_total", "Processes of plugins: those that were started, those of them that replaced one that had ended, and failures.", "plugin", "event")
	m.callers = callerFigures{
		requests: counter("caller_requests_total", "Requests of callers, by how they ended. Callers are named by the names of their tokens; others are counted together, by how they show who they are.", callerLabels("status")...),
		bytes:    counter("caller_bytes_total", "Bytes of bodies and answers of callers.", callerLabels("direction")...),
		work:     counter("caller_work_seconds_total", "How long workers worked for callers.", callerLabels()...),
	}
	m.provided = counter("provided_files_total", "Files that callers wanted, by where they were: among the objects that were put, beneath the folders of the server, at other servers, or nowhere.", "kind", "place")
	if h := s.offload; h != nil {
		m.handed = counter("handed_over_total", "Requests for which there was no place, by what became of them: a state of the fleet's job, or why there was none.", "outcome")
		m.shares = counter("handed_over_objects_total", "Files of objects that the queue of the fleet was to have.", "result")
		gauge("handed_over", "Requests that the fleet has.", func() float64 { return float64(h.active.Load()) })
		gauge("handed_over_waiting", "Requests that wait until the fleet may have them.", func() float64 { return float64(h.places.length()) })
		gauge("handed_over_ready", "1 while the queue of the fleet answers, 0 while what is over the limits is refused.", func() float64 {
			if h.connection.ready() {
				return 1
			}
			return 0
		})
	}
	if s.relay != nil {
		m.profiles = counter("otlp_profiles_total", "Profiles that a collector has taken, by whether a worker has looked for names, or why they went without.", "names")
		m.naming = counter("otlp_frames_total", "Frames of profiles that a collector has taken: those that had names, those that were named, and those without, by why.", "names")
		m.passing = prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "unwindd", Name: "otlp_forward_seconds", Help: "How long the collector took for requests with profiles, with the pauses between attempts.", Buckets: durations,
		}, []string{"outcome"})
		m.registry.MustRegister(m.passing)
	}
	m.downloads("debuginfod", s.upstream.debuginfod)
	m.downloads("symbols", s.upstream.symbols)
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "unwindd", Name: "request_duration_seconds", Help: "How long requests took, from their first byte to the last one of the answer.", Buckets: durations,
	}, []string{"kind"})
	m.waits = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "unwindd", Name: "queue_wait_seconds", Help: "How long requests waited for a worker, once they were sent.", Buckets: durations,
	})
	gauge("queue_length", "Requests that wait for a worker.", func() float64 { return float64(s.queue.length()) })
	gauge("connections", "Connections that are open.", func() float64 { return float64(s.connections.budget.inUse()) })
	gauge("requests_under_way", "Requests whose answers are not whole yet.", func() float64 { return float64(s.requests.inUse()) })
	gauge("message_bytes", "Bytes of memory that are kept for messages that come and go.", func() float64 { return float64(s.memory.inUse()) })
	gauge("spool_bytes", "Bytes on disk of requests and reports that are under way.", func() float64 { return float64(s.budget.inUse()) })
	stored := func(name, what string, amount func() bounded.Amount) {
		gauge(name+"_bytes", "Bytes of the "+what+" that are kept.", func() float64 { return float64(amount().Bytes) })
		gauge(name, "How many "+what+" are kept.", func() float64 { return float64(amount().Files) })
	}
	stored("objects", "code objects", s.store.Amount)
	if s.reports != nil {
		stored("reports", "reports", s.reports.Amount)
	}
	m.registry.MustRegister(m.seconds, m.waits, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// handler answers with the figures. They are made for one request at a time, so that who asks for
// them without end has one processor at most.
func (m *metrics) handler() http.Handler {
	figures := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := &kept{ResponseWriter: w}
		m.turn.Lock()
		if r.Context().Err() == nil { // otherwise the caller has gone
			figures.ServeHTTP(text, r)
		}
		m.turn.Unlock()
		_, _ = w.Write(text.Bytes()) // likewise
	})
}

// kept keeps an answer, whose caller may be slow.
type kept struct {
	http.ResponseWriter
	bytes.Buffer
}

// Write implements http.ResponseWriter.
func (k *kept) Write(p []byte) (int, error) { return k.Buffer.Write(p) }

// request counts a request that has ended.
func (m *metrics) request(kind, status string, took time.Duration) {
	m.requests.WithLabelValues(kind, status).Inc()
	m.seconds.WithLabelValues(kind).Observe(took.Seconds())
}

// waited counts how long a request waited for a worker.
func (m *metrics) waited(d time.Duration) { m.waits.Observe(d.Seconds()) }

func (m *metrics) received(bytes int64) { m.bytes.WithLabelValues("received").Add(float64(bytes)) }
func (m *metrics) sent(bytes int)       { m.bytes.WithLabelValues("sent").Add(float64(bytes)) }

func (m *metrics) worker(e worker.EventKind) { m.workers.WithLabelValues(eventNames[e]).Inc() }

// looked counts a look-up of a cache.
func (m *metrics) looked(cache string, isHit bool) {
	result := "miss"
	if isHit {
		result = "hit"
	}
	m.lookups.WithLabelValues(cache, result).Inc()
}

// callerFigures are the figures of each token's name, and of all other callers together.
type callerFigures struct{ requests, bytes, work *prometheus.CounterVec }

// callerLabels are the labels of a figure of callers, with further ones.
func callerLabels(more ...string) []string { return append([]string{"by", "caller"}, more...) }

// valuesOf returns the values of callerLabels. Only an administrator gives tokens their names, so that
// these are few.
func valuesOf(req *request, more ...string) []string {
	name := ""
	if req.kind == byToken {
		name = req.caller
	}
	return append([]string{string(req.kind), name}, more...)
}

// ofCaller counts a request that has ended, moved its bytes, and worked the time that a worker had for it.
func (m *metrics) ofCaller(req *request, status string) {
	m.callers.requests.WithLabelValues(valuesOf(req, status)...).Inc()
}

func (m *metrics) moved(req *request) {
	for direction, n := range map[string]int64{"received": req.received.Load(), "sent": req.sent.Load()} {
		m.callers.bytes.WithLabelValues(valuesOf(req, direction)...).Add(float64(n))
	}
}

func (m *metrics) worked(req *request, took time.Duration) {
	m.callers.work.WithLabelValues(valuesOf(req)...).Add(took.Seconds())
}

// forget removes the figures of a token's name.
func (m *metrics) forget(name string) {
	for _, c := range []*prometheus.CounterVec{m.callers.requests, m.callers.bytes, m.callers.work} {
		c.DeletePartialMatch(prometheus.Labels{"by": string(byToken), "caller": name})
	}
}

// gave counts a file that was wanted.
func (m *metrics) gave(kind object.RemoteKind, place string) {
	m.provided.WithLabelValues(string(kind), place).Inc()
}

// handedOver counts a request for which there was no place; shared counts a file for the queue.
func (m *metrics) handedOver(outcome string) { m.handed.WithLabelValues(outcome).Inc() }
func (m *metrics) shared(result string)      { m.shares.WithLabelValues(result).Inc() }

// passedOn counts profiles that the collector has taken; forwarded counts a request that was sent to it.
func (m *metrics) passedOn(names string, profiles int) {
	m.profiles.WithLabelValues(names).Add(float64(profiles))
}

// named counts the frames of a profile that was passed on with names.
func (m *metrics) named(n *job.Named) {
	m.naming.WithLabelValues("had").Add(float64(n.Had))
	m.naming.WithLabelValues("named").Add(float64(n.Found))
	for kind, frames := range n.Without {
		m.naming.WithLabelValues(kind).Add(float64(frames))
	}
}

func (m *metrics) forwarded(outcome string, took time.Duration) {
	m.passing.WithLabelValues(outcome).Observe(took.Seconds())
}

// downloads counts a client's look-ups: those that its cache answered, and those for which
// servers were asked.
func (m *metrics) downloads(cache string, remote object.Remote) {
	client, ok := remote.(interface{ Uses() (hits, misses uint64) })
	if !ok {
		return
	}
	for _, result := range []string{"hit", "miss"} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "unwindd", Name: "download_lookups_total", Help: "Files that were looked up among those that were downloaded before; servers are asked for those that are missed.",
			ConstLabels: prometheus.Labels{"cache": cache, "result": result},
		}, func() float64 {
			hits, misses := client.Uses()
			if result == "hit" {
				return float64(hits)
			}
			return float64(misses)
		}))
	}
}

// used counts a worker's use of cached code objects and of plugins.
func (m *metrics) used(u *job.Use) {
	m.lookups.WithLabelValues("code_objects", "hit").Add(float64(u.CodeObjects))
	m.lookups.WithLabelValues("code_objects", "miss").Add(float64(u.NewCodeObjects))
	for name, c := range u.Plugins {
		m.plugins.WithLabelValues(name, "started").Add(float64(c.Starts))
		m.plugins.WithLabelValues(name, "restarted").Add(float64(c.Restarts))
		m.plugins.WithLabelValues(name, "failed").Add(float64(c.Failures))
	}
}

// done counts the findings of a job.
func (m *metrics) done(kind string, o *job.Outcome) {
	m.used(&o.Used)
	m.stacks.WithLabelValues(kind).Add(float64(o.Counts.Stacks))
	for method, n := range o.Counts.Frames {
		m.frames.WithLabelValues(string(method)).Add(float64(n))
	}
	for reason, n := range o.Counts.Stops {
		m.stops.WithLabelValues(string(reason)).Add(float64(n))
	}
}
