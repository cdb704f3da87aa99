// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// This file divides the profile of a large recording among workers.
//
// The job of the whole stays in the queue until it has a result. Whoever is given it asks for
// its parts, which are jobs of their own with the same input, unless they wait or have
// results; while one has none, the whole is given back and comes again a moment later. Who
// finds results of all joins them. So there is nothing that anybody has to remember: what is
// to be done next is told by which results there are, whoever was killed before and wherever,
// and no worker waits for others while it could do a part. The price is the moment between
// the last part and the next time that the whole comes, an eighth of the time that the job
// is old.
//
// A job of the last part could be what asks for the join, without that moment. But servers of
// a cluster may answer with what was there a moment ago, so that each of two last parts may
// miss the result of the other, and nobody would join.

// MaxParts is how many parts a job may be divided into.
const MaxParts = 64

// Part says that a task is one of several that together are another one.
type Part struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// isSplit reports whether a job is done in parts.
func (j *job) isSplit() bool { return j.Parts > 1 && j.Part == nil }

// checkParts refuses what no client asks for.
func (j *job) checkParts() error {
	p := j.Part
	switch {
	case j.Parts < 0 || j.Parts > MaxParts || j.Parts > 1 && j.Kind != "profile":
		return fmt.Errorf("%d parts of a job of the kind %.100q", j.Parts, j.Kind)
	case p != nil && (j.Kind != "profile" || p.Count < 2 || p.Count > MaxParts || p.Index < 0 || p.Index >= p.Count):
		return fmt.Errorf("part %d of %d of a job of the kind %.100q", p.Index, p.Count, j.Kind)
	}
	return nil
}

// part is the job of a part.
func (j *job) part(index int) *job {
	p := *j
	p.Part, p.Parts = &Part{index, j.Parts}, 0
	return &p
}

// whole is the ID of the job that a part is of; "" for no part.
func (j *job) whole() string {
	if j.Part == nil {
		return ""
	}
	w := *j
	w.Part = nil
	return w.id()
}

// errPartsMissing says that parts of a job have no results yet.
var errPartsMissing = errors.New("parts of it have no results yet")

// askForParts returns the results of the parts of a job. Those that have none are asked for;
// the error is errPartsMissing then. failed is one that has no report and never will.
func (t *try) askForParts(ctx context.Context) (results []*Result, failed *Result, err error) {
	q, words := t.worker.queue, strings.Split(t.message.Subject, ".")
	priority := words[len(words)-2]
	missing := false
	for i := range t.job.Parts {
		p := t.job.part(i)
		id := p.id()
		r, err := q.Result(ctx, id)
		switch {
		case errors.Is(err, ErrNoResult):
			missing = true
			if _, err := q.enqueue(ctx, priority, id, p); err != nil {
				return nil, nil, err
			}
		case err != nil:
			return nil, nil, err
		case r.State != Done:
			return nil, r, nil
		default:
			results = append(results, r)
		}
	}
	if missing {
		return nil, nil, errPartsMissing
	}
	return results, nil, nil
}

// partsPause bounds how long the whole waits until it looks for the results of its parts
// again. It is a part of the time that the job is old.
const (
	leastPartsPause = 100 * time.Millisecond
	mostPartsPause  = 10 * time.Second
	partsPauseShare = 8
)

// await gives the whole back until its parts may have results.
func (t *try) await(ctx context.Context) {
	t.before.Waits++
	if err := t.writeTries(ctx); err != nil {
		t.later(err)
		return
	}
	pause := min(max(time.Since(t.job.Submitted)/partsPauseShare, leastPartsPause), mostPartsPause)
	if err := t.message.NakWithDelay(pause); err != nil {
		t.worker.queue.say("job %s: %v", t.id, err)
	}
}

// receive writes what a job is done with: its input, and behind it what its parts gave.
func (t *try) receive(ctx context.Context, w io.Writer) error {
	q := t.worker.queue
	if err := q.input(ctx, &t.job, w); err != nil {
		return err
	}
	for _, r := range t.parts {
		if err := q.Report(ctx, r, w); err != nil {
			return err
		}
	}
	return nil
}

// task is what the job asks for, with the sizes of what receive writes.
func (t *try) task() *Task {
	task := t.job.Task
	task.Size = t.job.Size
	for _, r := range t.parts {
		task.Joined = append(task.Joined, r.Size)
	}
	return &task
}

// dropParts takes the parts of a job that has a result out of the queue, with their results.
// What is missed of it goes when its time has passed, and no worker begins it.
func (q *Queue) dropParts(ctx context.Context, j *job) {
	if !j.isSplit() {
		return
	}
	for i := range j.Parts {
		id := j.part(i).id()
		q.withdraw(ctx, id)
		if r, err := q.Result(ctx, id); err == nil {
			if r.Object != "" {
				_ = q.reports.Delete(ctx, r.Object)
			}
			_ = q.results.Purge(ctx, jetstream.WithPurgeSubject(resultsPrefix+id))
		}
		_ = q.tries.Purge(ctx, id)
	}
}

// withdraw takes a job out of the queue, and ends it where it is under way. It returns the
// job, if it was there.
func (q *Queue) withdraw(ctx context.Context, id string) (found *job) {
	_ = q.conn.Publish(cancelPrefix+id, nil) // a worker looks from time to time
	for p, jobs := range q.jobs {
		m, err := jobs.GetLastMsgForSubject(ctx, jobsPrefix+p+"."+id)
		if err != nil {
			continue
		}
		_ = jobs.DeleteMsg(ctx, m.Sequence) // else a worker finds that there is a result
		if j, err := readJob(m.Data); err == nil {
			found = j
		}
	}
	return found
}
