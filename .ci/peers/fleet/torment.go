// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/processes"
	"github.com/unwindd/unwindd/.ci/peers/smalldisk"
	"github.com/unwindd/unwindd/engine/service/fleet"
)

// workersAtOnce is how many worker processes there are, the one that is cut off among them.
const workersAtOnce = 3

// cutFor is how long a worker is cut off: it is taken for dead after 20 seconds.
const cutFor = 26 * time.Second

// tormenting is a run of jobs while processes die.
type tormenting struct {
	m       *material
	server  queueServer
	process *process
	workers []*process
	far     *link // between the first worker and the server
	disk    string
	wants   []*wanted

	killedWorkers, killedServers, fills, cuts atomic.Int64
	refusals                                  atomic.Int64 // of jobs that were asked for again
	known                                     atomic.Int64 // jobs that were asked for before
}

// torment has jobs done by workers, while everything dies.
func (m *material) torment(server queueServer, n, cuts int) error {
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &tormenting{m: m, server: server, disk: filepath.Join(dir, "disk"), wants: m.wants(n)}
	if err := os.Mkdir(t.disk, 0o700); err != nil {
		return err
	}
	unmount, err := smalldisk.Mount(t.disk, 2*queueSize(n))
	if err != nil {
		return err
	}
	defer unmount()
	fmt.Printf("\n%d jobs, %d workers, %s\n", n, workersAtOnce, server.name())
	err = t.run(dir, n, cuts)
	t.keepLogs(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", server.name(), err)
	}
	return nil
}

// keepLogs copies logs for who keeps them.
func (t *tormenting) keepLogs(dir string) {
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	more, _ := filepath.Glob(filepath.Join(t.disk, "*.log"))
	for _, path := range append(logs, more...) {
		if b, err := os.ReadFile(path); err == nil {
			_ = os.WriteFile(filepath.Join(t.m.dir, fmt.Sprintf("%.12s %s", t.server.name(), filepath.Base(path))), b, 0o600)
		}
	}
}

func (t *tormenting) run(dir string, n, cuts int) (err error) {
	if t.process, err = t.server.prepare(filepath.Join(t.disk, "server"), n); err != nil {
		return err
	}
	if err := t.process.start(); err != nil {
		return err
	}
	defer t.process.kill()
	if t.far, err = newLink(t.server.address()); err != nil {
		return err
	}
	defer t.far.close()
	q, err := connectTo(t.server.url(), n)
	if err != nil {
		return err
	}
	defer q.Close()
	if err := t.m.sendFiles(context.Background(), q); err != nil {
		return err
	}
	for i := range workersAtOnce {
		w := t.m.worker(filepath.Join(dir, fmt.Sprintf("w%d", i)), t.server.url())
		if i == 0 {
			w = t.m.worker(w.dir, "nats://"+secretOf(t.server.url())+"@"+t.far.address())
		}
		defer w.kill()
		if err := w.start(); err != nil {
			return err
		}
		t.workers = append(t.workers, w)
	}
	began := time.Now()
	stop := make(chan struct{})
	var all sync.WaitGroup
	t.harm(&all, stop, cuts)
	results, err := t.await(q)
	close(stop)
	all.Wait()
	fmt.Printf("%d results in %.1f s: %d workers and %d servers killed, %d times the disk was full, %d times a worker was cut off for %v, whose results were refused %d times\n",
		len(results), time.Since(began).Seconds(), t.killedWorkers.Load(), t.killedServers.Load(), t.fills.Load(), t.cuts.Load(), cutFor, t.far.late.Load())
	fmt.Printf("%d times a job was asked for that was known, %d times asking failed and was tried again\n", t.known.Load(), t.refusals.Load())
	return errors.Join(err, t.judge(q, results), t.end())
}

// secretOf returns the part of a URL before its host.
func secretOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.User.String()
}

// worker is one that does one job at a time.
func (m *material) worker(dir, url string) *process {
	return &process{dir: dir, isClocked: m.isClocked, says: "working for ", argv: []string{
		m.unwindd, "worker", "--queue", url, "--workers", "1", "--state", filepath.Join(dir, "state"), "--log-level", "warn",
	}}
}

// connectTo reaches the queue, also while its server starts.
func connectTo(url string, n int) (q *fleet.Queue, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		q, err = fleet.Connect(context.Background(), fleet.Options{URL: url, Name: "fleet", Keep: fleet.Keep{Bytes: queueSize(n)}})
		if err == nil {
			return q, nil
		}
	}
	return nil, err
}

// await asks for all jobs, half of them twice, and waits for their results. The error says
// which did not come.
func (t *tormenting) await(q *fleet.Queue) (map[string]*fleet.Result, error) {
	n := len(t.wants)
	var all sync.WaitGroup
	failed := make([]error, 2)
	for i := range 2 { // submitters
		all.Go(func() { failed[i] = t.ask(i, n) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	var ids []string
	for _, w := range t.wants {
		ids = append(ids, w.id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), resultsPatience)
	defer cancel()
	results := map[string]*fleet.Result{}
	err := q.Wait(ctx, ids, func(r *fleet.Result) error {
		results[r.ID] = r
		return nil
	})
	if err != nil {
		err = fmt.Errorf("%d of %d jobs have results: %w", len(results), n, err)
	}
	return results, err
}

// resultsPatience is how long results may take once all jobs are asked for.
const resultsPatience = 15 * time.Minute

// askFor is how long it takes at least to ask for all jobs.
const askFor = 20 * time.Second

// ask asks for jobs: the first submitter for all, the second one for half of them.
func (t *tormenting) ask(submitter, n int) error {
	q, err := connectTo(t.server.url(), n)
	if err != nil {
		return err
	}
	defer q.Close()
	began := time.Now()
	for i, w := range t.wants {
		if submitter == 1 && i%2 == 1 {
			continue
		}
		time.Sleep(time.Until(began.Add(askFor * time.Duration(i) / time.Duration(n)))) // few jobs would be done before anything dies
		s, err := t.askUntil(q, w)
		if err != nil {
			return err
		}
		if s.Known {
			t.known.Add(1)
		}
		if submitter == 0 {
			w.id = s.ID
		}
	}
	return nil
}

// askUntil asks for a job until somebody takes it.
func (t *tormenting) askUntil(q *fleet.Queue, w *wanted) (s *fleet.Submitted, err error) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		s, err = w.submit(ctx, q)
		cancel()
		if err == nil {
			return s, nil
		}
		t.refusals.Add(1)
	}
	return nil, fmt.Errorf("nobody takes %s: %w", w.name, err)
}

// harm harms the fleet in all ways, until stop is closed.
func (t *tormenting) harm(all *sync.WaitGroup, stop <-chan struct{}, cuts int) {
	for _, p := range append(t.workers[:len(t.workers):len(t.workers)], t.process) {
		all.Go(func() { p.keepAlive(stop) })
	}
	often := func(number uint64, each time.Duration, do func(*rand.Rand)) {
		r := rand.New(rand.NewPCG(*seed, number)) //nolint:gosec // no secret
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(each/2 + time.Duration(r.Int64N(int64(each)))):
					do(r)
				}
			}
		})
	}
	often(1, *every, func(r *rand.Rand) {
		if t.workers[1+r.IntN(len(t.workers)-1)].kill() { // the first one is to be late, not dead
			t.killedWorkers.Add(1)
		}
	})
	often(2, 4**every, func(*rand.Rand) {
		if t.process.kill() {
			t.killedServers.Add(1)
		}
	})
	often(3, 5**every, func(r *rand.Rand) {
		smalldisk.Fill(t.disk, 500*time.Millisecond+time.Duration(r.Int64N(int64(1500*time.Millisecond))))
		t.fills.Add(1)
	})
	if cuts > 0 {
		all.Go(func() { t.cut(stop, cuts) })
	}
}

// cut cuts the first worker off, so many times.
func (t *tormenting) cut(stop <-chan struct{}, n int) {
	for range n {
		select {
		case <-stop:
			return
		case <-t.far.cutWithResult():
		}
		select {
		case <-stop: // its job is another's, and may be late
		case <-time.After(cutFor):
			t.cuts.Add(1)
		}
		t.far.cut(false)
		time.Sleep(2 * time.Second) // late data arrives
	}
}

// judge compares every result with the command's output, and the kept results with the
// requests.
func (t *tormenting) judge(q *fleet.Queue, results map[string]*fleet.Result) error {
	var errs []error
	states, tries, missing := map[fleet.State]int{}, map[int]int{}, 0
	for _, w := range t.wants {
		r := results[w.id]
		if r == nil {
			missing++
			continue
		}
		states[r.State]++
		tries[r.Tries]++
		if err := w.wrongWith(context.Background(), q, r); err != nil && len(errs) < 5 {
			errs = append(errs, err)
		}
	}
	if missing > 0 {
		errs = append(errs, fmt.Errorf("%d jobs have no result", missing))
	}
	k, err := keptBy(t.server.url(), len(t.wants))
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	fmt.Printf("results %v, ends of the work on a job %v; %d jobs were given out %d times; %d results are kept, of %d that were stored\n",
		states, tries, k.jobs, k.deliveries, k.results, k.stored)
	return errors.Join(append(errs, k.wrongWith(len(t.wants)))...)
}

// end ends all processes, and returns what they left behind.
func (t *tormenting) end() error {
	var errs []error
	for _, w := range t.workers {
		// One that was killed leaves things, which the next one removes.
		errs = append(errs, w.ensure(), w.end(), w.left("state/fleet/", "cache/"))
	}
	errs = append(errs, t.process.ensure(), t.process.end(), t.process.left(append(t.server.files(), "cache/")...))
	for _, pid := range processes.Executing(t.m.unwindd) {
		if !processes.IsGone(pid) {
			errs = append(errs, fmt.Errorf("process %d is left", pid))
		}
	}
	return errors.Join(errs...)
}
