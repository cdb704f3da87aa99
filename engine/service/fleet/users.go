// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// This file has the names by which users of a queue are kept apart. A user's name is a word of
// the subjects, streams and inboxes that are his, so that permissions of NATS can tell them from
// the rest.

// Names of a user's streams and subjects begin with these, and his word.
const (
	userStreams  = "UNWINDD_USER_"
	userSubjects = "unwindd.user."
	allStreams   = "UNWINDD_"
	allSubjects  = "unwindd."
)

// named returns the name of a stream or a store of the queue.
func (q *Queue) named(name string) string {
	if q.user == "" {
		return name
	}
	return userStreams + q.user + "_" + strings.TrimPrefix(name, allStreams)
}

// subject returns a subject, or its beginning, of the queue.
func (q *Queue) subject(text string) string {
	if q.user == "" {
		return text
	}
	return userSubjects + q.user + "." + strings.TrimPrefix(text, allSubjects)
}

// inboxOf returns the beginning of the subjects of answers to a user.
func inboxOf(user string) string { return "_INBOX_" + user }

// maxWord bounds a user's word: names of streams are names of files.
const maxWord = 64

// word returns a user's name as a word of subjects: characters other than letters, digits, - and _
// are _ and two digits of hexadecimal.
func word(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; isWordByte(c) {
			b.WriteByte(c)
		} else {
			_, _ = fmt.Fprintf(&b, "_%02x", c) // it never fails
		}
	}
	return b.String()
}

func isWordByte(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isWord reports whether a text may be a user's word.
func isWord(text string) bool {
	return text != "" && len(text) <= maxWord && !slices.ContainsFunc([]byte(text), func(c byte) bool { return !isWordByte(c) })
}

// userName returns the name of the connection's user: that of its URL, or of its credentials; "":
// it has none.
func (o *Options) userName() string {
	if o.Server != nil {
		return ""
	}
	if o.Credentials != "" {
		return nameOfCredentials(o.Credentials)
	}
	first, _, _ := strings.Cut(o.URL, ",")
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil || u.User == nil {
		return ""
	}
	if _, hasPassword := u.User.Password(); !hasPassword && o.Certificate == "" {
		return "" // it is a token
	}
	return u.User.Username()
}

// tokenOfUser finds the JWT in a file of credentials.
var tokenOfUser = regexp.MustCompile(`(?m)^([\w-]+)\.([\w-]+)\.([\w-]+)\s*$`)

// maxCredentials bounds a file of credentials, in bytes.
const maxCredentials = 1 << 20

// nameOfCredentials returns the name of the user in a file of credentials; "" where it cannot be
// read: then connecting fails, and says why. The server verifies the JWT.
func nameOfCredentials(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCredentials {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	found := tokenOfUser.FindSubmatch(text)
	if found == nil {
		return ""
	}
	claims, err := base64.RawURLEncoding.DecodeString(string(found[2]))
	if err != nil {
		return ""
	}
	var user struct{ Name, Sub string }
	if json.Unmarshal(claims, &user) != nil {
		return ""
	}
	if user.Name == "" {
		return user.Sub
	}
	return user.Name
}

// userQueues are the queues of users, with the connection of one that may use all.
type userQueues struct {
	mu    sync.Mutex
	known map[string]*Queue
}

// maxUsers bounds the users of an account: each has streams of his own.
const maxUsers = 10_000

// of returns the queue of a user, whose streams it makes where they are missing.
func (q *Queue) of(ctx context.Context, user string) (*Queue, error) {
	if user == q.user {
		return q, nil
	}
	if !isWord(user) {
		return nil, fmt.Errorf("a user called %.100q: expected at most %d letters, digits, - and _", user, maxWord)
	}
	q.others.mu.Lock()
	own, n := q.others.known[user], len(q.others.known)
	q.others.mu.Unlock()
	if own != nil {
		return own, nil
	}
	if n >= maxUsers {
		return nil, fmt.Errorf("%w: it has %d users", ErrFull, n)
	}
	own = &Queue{Options: q.Options, conn: q.conn, js: q.js, user: user, others: q.others}
	if err := own.make(ctx); err != nil {
		return nil, err
	}
	q.others.mu.Lock()
	defer q.others.mu.Unlock()
	if first := q.others.known[user]; first != nil {
		return first, nil
	}
	q.others.known[user] = own
	return own, nil
}

// forget forgets the queue of a user whose streams are gone.
func (q *Queue) forget(user string) {
	q.others.mu.Lock()
	defer q.others.mu.Unlock()
	delete(q.others.known, user)
}

// users lists the users that have jobs streams.
func (q *Queue) users(ctx context.Context) (list []string, err error) {
	last := "_" + strings.TrimPrefix(jobsOf(Priorities[0]), allStreams)
	names := q.js.StreamNames(ctx, jetstream.WithStreamListSubject(userSubjects+"*.job.>"))
	for name := range names.Name() {
		if user, ok := strings.CutSuffix(name, last); ok {
			if user, ok = strings.CutPrefix(user, userStreams); ok && isWord(user) {
				list = append(list, user)
			}
		}
	}
	slices.Sort(list)
	return list, names.Err()
}

// refusals tell calls that are under way that the server has denied the user something: there is
// no other answer then.
type refusals struct {
	mu    sync.Mutex
	calls map[*context.CancelCauseFunc]bool
}

// tell ends the calls that are under way.
func (r *refusals) tell(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for end := range r.calls {
		(*end)(err)
	}
}

// listen has tell end a call, until stop is called.
func (r *refusals) listen(end context.CancelCauseFunc) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[*context.CancelCauseFunc]bool{}
	}
	r.calls[&end] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, &end)
	}
}

// guard makes a call, which ends with ErrRefused where the server denies the user something.
func (q *Queue) guard(ctx context.Context, call func(context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer q.refusals.listen(end)()
	err := call(ctx)
	if refusal := context.Cause(ctx); err != nil && errors.Is(refusal, ErrRefused) {
		return refusal
	}
	return err
}
