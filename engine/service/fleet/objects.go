// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
)

// Objects gives a worker the code objects of a queue, and caches them in a store of its own.
// It is an object.Remote, of those that the account has.
type Objects struct {
	queue *Queue
	cache *objects.Store
	more  object.Remote

	mu    sync.Mutex
	check Check
	wrong map[string]error // files that are not what they are called, by digest and name
}

// Check returns an error where a file is not that of a build ID, or of another kind.
type Check func(ctx context.Context, f *os.File, id []byte, kind string) error

// OpenObjects opens the code objects of a queue, cached in the folder dir, which it makes if
// necessary; maxBytes bounds the cache. more is asked for objects that the queue does not have;
// it may be nil. SetCheck has to be called before a file is fetched.
func OpenObjects(q *Queue, dir string, maxBytes int64, more object.Remote) (*Objects, error) {
	cache, err := objects.Open(dir, maxBytes)
	if err != nil {
		return nil, err
	}
	return &Objects{queue: q, cache: cache, more: more, wrong: map[string]error{}}, nil
}

// SetCheck sets the function that checks files before they are used: who put them may have called
// them anything.
func (o *Objects) SetCheck(c Check) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.check = c
}

// Of returns the code objects for the jobs of a user: his own, and where he has none the ones of the
// account.
func (o *Objects) Of(user string) object.Remote { return userObjects{o, user} }

// Fetch implements object.Remote.
func (o *Objects) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	return o.Of("").Fetch(f)
}

// userObjects are the Objects for the jobs of a user.
type userObjects struct {
	*Objects
	user string
}

// remoteKinds maps the kinds of files that the queue has by build ID.
var remoteKinds = map[object.RemoteKind]string{
	object.RemoteDebuginfo: objects.DebugInfo, object.RemoteExecutable: objects.Executable, object.RemotePDB: objects.DebugInfo,
}

// Fetch implements object.Remote.
func (u userObjects) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	if kind, ok := remoteKinds[f.Kind]; ok && isObjectID(f.BuildID) {
		ctx, cancel := context.WithTimeout(context.Background(), fetchPatience)
		defer cancel()
		users := []string{u.user, ""}
		if u.user == "" {
			users = users[1:]
		}
		for _, user := range users {
			path, err := u.find(ctx, user, f.BuildID, kind)
			if path != "" {
				return path, tried
			}
			if !errors.Is(err, jetstream.ErrObjectNotFound) {
				tried = append(tried, object.Attempt{Path: "the queue", Reason: err.Error()})
			}
		}
	}
	if u.more == nil {
		return "", tried
	}
	path, more := u.more.Fetch(f)
	return path, append(tried, more...)
}

// find finds a file that a user has put. What the queue has is looked up each time: who put a wrong
// file may have put the right one since.
func (o *Objects) find(ctx context.Context, user string, id []byte, kind string) (path string, err error) {
	q, err := o.queue.of(ctx, user)
	if err != nil {
		return "", err
	}
	info, err := q.objects.GetInfo(ctx, objectName(id, kind))
	if err != nil {
		return "", err
	}
	sum := sumOf(info)
	if sum == "" {
		return "", errors.New("a file without a SHA-256")
	}
	// The cache has a file once, whoever put it: its owner is its digest.
	if path := o.cache.Of(sum).Own(id, kind); path != "" {
		return path, nil
	}
	key := sum + " " + info.Name
	o.mu.Lock()
	err = o.wrong[key]
	o.mu.Unlock()
	if err != nil {
		return "", err
	}
	if err := o.fetch(ctx, q, sum, id, kind); err != nil {
		return "", err
	}
	return o.cache.Of(sum).Own(id, kind), nil
}

// fetchPatience bounds the time of fetching one file of an object.
const fetchPatience = 2 * time.Minute

// errUnchecked is the error of a worker that cannot check files.
var errUnchecked = errors.New("nothing here checks files of code")

// fetch copies a file from the queue, and keeps it if it has the build ID of its name. NATS has checked its
// digest when it ends.
func (o *Objects) fetch(ctx context.Context, q *Queue, sum string, id []byte, kind string) error {
	name := objectName(id, kind)
	r, err := q.objects.Get(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	part, err := o.cache.Create()
	if err != nil {
		return err
	}
	defer part.Close()
	h := newSum(part)
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	if err := r.Error(); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Hash.Sum(nil)); got != sum {
		return errors.New("it was replaced while it came") // it is looked up again with the next job
	}
	o.mu.Lock()
	check := o.check
	o.mu.Unlock()
	if check == nil {
		return errUnchecked
	}
	if err := check(ctx, part.File, id, kind); err != nil {
		o.refuse(sum+" "+name, err)
		return err
	}
	_, err = part.Keep(sum, id, kind)
	return err
}

// WrongFile is the error of a Check for a file that is not what it is called, and will never be.
type WrongFile struct{ Reason string }

func (e *WrongFile) Error() string { return e.Reason }

// maxWrong bounds the files that are remembered as wrong.
const maxWrong = 10_000

// refuse remembers that a file is wrong, so that it is not fetched for each job.
func (o *Objects) refuse(key string, err error) {
	var wrong *WrongFile
	if !errors.As(err, &wrong) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.wrong) >= maxWrong {
		clear(o.wrong)
	}
	o.wrong[key] = err
}
