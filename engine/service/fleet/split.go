// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// This file divides the profile of a large recording among workers.
//
// The job of the whole stays in the queue until it has a result. A worker that gets it
// enqueues its parts, which are jobs of their own with the same input, unless they wait or
// have results. While one has none, the whole goes back to the queue, and comes again a
// moment later. A worker that finds the results of all parts joins them. So there is no other
// state: the results tell the next step, whoever was killed before, and no worker waits for
// others while it could do a part. The price is the time between the last part and the next
// delivery of the whole, an eighth of the job's age.
//
// The job of the last part could ask for the join, without that delay. But servers of a
// cluster may answer with a state of a moment ago, so that each of two last parts may miss
// the result of the other, and neither would join.

// MaxParts is how many parts a job may be divided into.
const MaxParts = 64

// Part identifies one of the parts that a task is divided into.
type Part struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// isSplit reports whether a job is done in parts.
func (j *job) isSplit() bool { return j.Parts > 1 && j.Part == nil }

// checkParts refuses parts that no client asks for.
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

// part returns the job of a part.
func (j *job) part(index int) *job {
	p := *j
	p.Part, p.Parts = &Part{index, j.Parts}, 0
	return &p
}

// whole returns the ID of a part's whole job; "" where the job is no part.
func (j *job) whole() string {
	if j.Part == nil {
		return ""
	}
	w := *j
	w.Part = nil
	return w.id()
}

// errPartsMissing is the error of a job whose parts do not all have results.
var errPartsMissing = errors.New("parts of it have no results yet")

// askForParts returns the results of the parts of a job. It enqueues parts without one, and
// returns errPartsMissing. failed is the result of a part that will never have a report.
func (t *try) askForParts(ctx context.Context) (results []*Result, failed *Result, err error) {
	q, words := t.queue, strings.Split(t.message.Subject, ".")
	priority := words[len(words)-2]
	missing := false
	for i := range t.job.Parts {
		p := t.job.part(i)
		id := p.id()
		r, err := q.Result(ctx, id)
		switch {
		case errors.Is(err, ErrNoResult), errors.Is(err, errForged):
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

// The pause before the whole looks for the results of its parts again is a share of the
// job's age, within bounds.
const (
	leastPartsPause = 100 * time.Millisecond
	mostPartsPause  = 10 * time.Second
	partsPauseShare = 8
)

// await puts the whole back into the queue, until its parts may have results.
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

// receive writes the input of a job, followed by the results of its parts.
func (t *try) receive(ctx context.Context, w io.Writer) error {
	q := t.queue
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

// task returns the job's task, with the sizes of the pieces that receive writes.
func (t *try) task() *Task {
	task := t.job.Task
	task.Size, task.User = t.job.Size, t.queue.user
	for _, r := range t.parts {
		task.Joined = append(task.Joined, r.Size)
	}
	return &task
}

// dropParts removes the parts of a finished job and their results from the queue. A part
// that it misses expires, and no worker begins it.
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
			_ = q.dropResult(ctx, id)
		}
		_ = q.tries.Purge(ctx, id)
	}
}

// withdraw takes a job out of the queue, and ends it where it is under way. It returns the
// job, if it was there.
func (q *Queue) withdraw(ctx context.Context, id string) (found *job) {
	_ = q.conn.Publish(q.subject(cancelPrefix)+id, nil) // workers also look from time to time
	return q.removeJob(ctx, id)
}

// removeJob removes a job's message. It returns the job, if it was there.
func (q *Queue) removeJob(ctx context.Context, id string) (found *job) {
	for p, jobs := range q.jobs {
		m, err := jobs.GetLastMsgForSubject(ctx, q.subject(jobsPrefix)+p+"."+id)
		if err != nil {
			continue
		}
		_ = jobs.DeleteMsg(ctx, m.Sequence) // else a worker finds that there is a result
		if j, err := readJobOf(id, m.Data); err == nil {
			found = j
		}
	}
	return found
}
