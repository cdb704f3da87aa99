// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// flushPause is how old what the file lacks may be where somebody reads it meanwhile.
const flushPause = 200 * time.Millisecond

// sampleAll takes the samples of all moments.
func (r *session) sampleAll(ctx context.Context) error {
	begun := time.Now()
	flushed := begun
	due := time.Duration(0)
	for r.options.Repeat <= 0 || r.recorded.Moments < r.options.Repeat {
		if r.isOver(due) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.options.Enough:
			if r.options.Repeat > 0 {
				r.problem("process %d: the recording was ended after %d of %d moments", r.first, r.recorded.Moments, r.options.Repeat)
			}
			return nil
		case <-time.After(due - time.Since(begun)):
		}
		err := r.sampleEach()
		isEnough := errors.Is(err, errEnough)
		if err != nil && !isEnough {
			return err
		}
		if len(r.processes) == 0 {
			return nil
		}
		r.recorded.Moments++
		if isEnough {
			return nil
		}
		if r.options.Progress != nil {
			if time.Since(flushed) > flushPause {
				r.out.Flush()
				flushed = time.Now()
			}
			r.options.Progress(r.recorded.Moments)
		}
		due = r.next(due, time.Since(begun))
	}
	return nil
}

// sampleEach takes the samples of a moment of all processes. One that cannot be sampled any more is
// left out from then on; the error is that of the first moment of the only one.
func (r *session) sampleEach() error {
	if r.options.Children && r.recorded.Moments%childrenEvery == 0 {
		r.addChildren()
	}
	for i := 0; i < len(r.processes); i++ {
		p := r.processes[i]
		err := p.sample()
		switch {
		case err == nil:
			continue
		case errors.Is(err, errEnough):
			return err
		case errors.Is(err, ErrEnded) && r.options.Repeat <= 0 && r.options.Duration == 0:
			// It was to be recorded until it ends.
		case r.recorded.Moments == 0 && len(r.processes) == 1:
			return err
		default:
			r.problem("%v: what was recorded until then is here", err)
		}
		r.processes = slices.Delete(r.processes, i, i+1)
		i--
	}
	return nil
}

// hasRoom returns errEnough where the recording is as large as it may be.
func (r *session) hasRoom() error {
	most := r.options.MaxBytes
	if most == 0 || r.out.Size() <= most {
		return nil
	}
	of := ""
	if r.options.Repeat > 0 {
		of = fmt.Sprintf(" of %d", r.options.Repeat)
	}
	r.problem("process %d: the recording has %d bytes after %d%s moments, which is all that there is room for", r.first, r.out.Size(), r.recorded.Moments+1, of)
	return errEnough
}

// isOver reports whether a moment that is due after a time is behind the end of the recording.
func (r *session) isOver(due time.Duration) bool {
	return r.options.Duration > 0 && due >= r.options.Duration
}

// next returns when the next moment is due, by the time when the last one was due and the time that
// has passed. Moments that are over are missed.
func (r *session) next(due, passed time.Duration) time.Duration {
	o := &r.options
	due += o.Every
	if o.Every == 0 {
		return max(due, passed)
	}
	late := passed - due
	if late <= 0 {
		return due
	}
	missed := int(late/o.Every) + 1
	if o.Repeat > 0 {
		missed = min(missed, o.Repeat-r.recorded.Moments)
	}
	if o.Duration > 0 {
		missed = min(missed, int((o.Duration-due+o.Every-1)/o.Every)) // in the time that there was
	}
	missed = max(missed, 0)
	r.recorded.Missed += missed
	return due + time.Duration(missed)*o.Every
}

// event is the name of the recording's event.
func (r *session) event() string {
	if r.options.OnlyRunning {
		return RunningEvent
	}
	return WallEvent
}

// isNothing says why there is no sample.
func (r *session) isNothing() {
	if r.options.OnlyRunning && r.recorded.Waiting > 0 {
		r.problem("process %d: all its threads waited at each of %d moments, and none has a sample", r.first, r.recorded.Moments)
	}
}

// wants reports whether a thread in a state is sampled.
func (r *session) wants(id int, state byte) bool {
	if hasEnded(state) {
		return true // the tracer finds that out
	}
	return r.isNamed(id) && !(r.options.OnlyRunning && isWaiting(state))
}

// isNamed reports whether a thread is among the options' threads.
func (r *session) isNamed(id int) bool {
	return len(r.options.Threads) == 0 || slices.Contains(r.options.Threads, id)
}

// isWaiting reports whether a thread in a state of /proc/PID/stat waits for something else than a
// processor. Threads that have ended do not.
func isWaiting(state byte) bool {
	return state != 'R' && !hasEnded(state)
}

// hasEnded reports whether a state is of a thread that has ended.
func hasEnded(state byte) bool { return state == 0 || state == 'Z' || state == 'X' || state == 'x' }

// leavesOut reads the state of a thread, and reports whether it is not to be stopped.
func (t *tracer) leavesOut(th *tracee) bool {
	th.state = stateOf(t.pid, th.id)
	th.isLeftOut = !t.wanted(th.id, th.state)
	return th.isLeftOut
}

// stateOf returns the state of a thread; 0 where it has ended.
func stateOf(pid, id int) byte {
	var name [64]byte
	path := append(strconv.AppendInt(append(strconv.AppendInt(append(name[:0], "/proc/"...), int64(pid), 10), "/task/"...), int64(id), 10), "/stat"...)
	fd, err := unix.Open(string(path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	// The name before the state has 64 bytes at most, of which escapes make some more.
	var data [256]byte
	n, err := unix.Read(fd, data[:])
	if err != nil {
		return 0
	}
	i := bytes.LastIndex(data[:n], []byte(") "))
	if i < 0 || i+2 >= n {
		return 0
	}
	return data[i+2]
}

// countWaiting counts a thread that is left out because it waits.
func (r *session) countWaiting(th *tracee) {
	if r.isNamed(th.id) && isWaiting(th.state) {
		r.recorded.Waiting++
	}
}
