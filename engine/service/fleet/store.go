// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// transferPatience bounds the time of a file's transfer, where the caller sets none: without a
// deadline the library allows no more than for an answer.
const transferPatience = time.Hour

// digest returns the SHA-256 of a file, in hexadecimal, and its size.
func digest(f io.ReadSeeker) (name string, size int64, err error) {
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// freshFor is the divisor of the storage time: an object younger than the quotient need not
// be sent again.
const freshFor = 2

// has reports whether a store has an object with a SHA-256, and will have it for a while. A name
// is only what somebody has called it.
func (q *Queue) has(ctx context.Context, store jetstream.ObjectStore, name, sum string) (bool, error) {
	info, err := store.GetInfo(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return sumOf(info) == sum && time.Since(info.ModTime) < q.Time/freshFor, nil
}

// sumOf returns the SHA-256 of an object, in hexadecimal, which readers of the object check; "":
// there is none.
func sumOf(info *jetstream.ObjectInfo) string {
	sum, ok := strings.CutPrefix(info.Digest, "SHA-256=")
	b, err := base64.URLEncoding.DecodeString(sum)
	if !ok || err != nil || len(b) != sha256.Size {
		return ""
	}
	return hex.EncodeToString(b)
}

// errWrongSum is the error of a file that was changed on its way, or while it was read.
var errWrongSum = errors.New("the file is not the one that was announced")

// keep stores a file with a SHA-256 under a name. sent is false where it is there already.
func (q *Queue) keep(ctx context.Context, store jetstream.ObjectStore, name, sum string, f io.Reader) (sent bool, err error) {
	has, err := q.has(ctx, store, name, sum)
	if has || err != nil {
		return false, err
	}
	return true, q.put(ctx, store, name, sum, f)
}

// put stores a file with a SHA-256 under a name, in the place of another one.
func (q *Queue) put(ctx context.Context, store jetstream.ObjectStore, name, sum string, f io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, transferPatience)
	defer cancel()
	info, err := store.Put(ctx, jetstream.ObjectMeta{Name: name}, f)
	if err != nil {
		return full(err)
	}
	if sumOf(info) != sum {
		return errors.Join(errWrongSum, store.Delete(ctx, name))
	}
	return nil
}

// ErrFull is wrapped by the errors of a full queue.
var ErrFull = errors.New("the queue is full")

// Codes of JetStream for a limit of bytes: of a stream, and of the server or the account.
const (
	codeStreamFull   = 10077 // also: the subject has a message
	codeStorageFull  = 10047
	codeMaxBytes     = 10122
	codeInsufficient = 10023
	subjectIsTaken   = "maximum messages per subject exceeded"
)

// full wraps an error of a limit in ErrFull.
func full(err error) error {
	var e *jetstream.APIError
	if !errors.As(err, &e) {
		return err
	}
	switch e.ErrorCode {
	case codeStorageFull, codeMaxBytes, codeInsufficient:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case codeStreamFull:
		if e.Description != subjectIsTaken {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
	return err
}

// copyOut writes an object to w, and checks its SHA-256.
func copyOut(ctx context.Context, store jetstream.ObjectStore, name, sum string, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, transferPatience)
	defer cancel()
	r, err := store.Get(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, h), r); err != nil {
		return err
	}
	if err := r.Error(); err != nil {
		return err
	}
	return checkSum("what is kept as "+name, h, sum)
}

// writeChecked writes the data of a message to w, after its SHA-256 is checked.
func writeChecked(what string, data []byte, sum string, w io.Writer) error {
	h := sha256.New()
	_, _ = h.Write(data) // it never fails
	if err := checkSum(what, h, sum); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// summed is a Writer that sums what it writes.
type summed struct {
	io.Writer
	Hash hash.Hash
}

func newSum(w io.Writer) *summed {
	h := sha256.New()
	return &summed{io.MultiWriter(w, h), h}
}

func checkSum(what string, h hash.Hash, want string) error {
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has the SHA-256 %s, expected %s", what, got, want)
	}
	return nil
}

// input writes the input of a job to w.
func (q *Queue) input(ctx context.Context, j *job, w io.Writer) error {
	if j.Size == 0 || len(j.Data) > 0 {
		return writeChecked("the input", j.Data, j.Input, w)
	}
	if j.Size <= maxAtOnce {
		if chunks := q.chunks(ctx, inputsBucket, q.inputs, j.Input); sumOfAll(chunks) == j.Input {
			for _, c := range chunks {
				if _, err := w.Write(c); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return copyOut(ctx, q.inputs, j.Input, j.Input, w)
}

// maxAtOnce bounds the bytes of an object that is read at once.
const maxAtOnce = 8 << 20

// chunks returns the chunks of an object by one request. The library makes a consumer for each object
// that it reads, which costs more than a small one. Servers before 2.11 answer with the first chunk
// alone; then, and where anything else is wrong, what it returns is not the object.
func (q *Queue) chunks(ctx context.Context, bucket string, store jetstream.ObjectStore, name string) (list [][]byte) {
	ctx, cancel := context.WithTimeout(ctx, ackPatience)
	defer cancel()
	info, err := store.GetInfo(ctx, name)
	if err != nil || info.Size > maxAtOnce {
		return nil
	}
	answers, err := q.conn.SubscribeSync(q.conn.NewInbox())
	if err != nil {
		return nil
	}
	defer func() { _ = answers.Unsubscribe() }()
	bucket = q.named(bucket)
	subject := "$O." + bucket + ".C." + info.NUID
	request, err := json.Marshal(map[string]any{"seq": 1, "batch": info.Chunks, "next_by_subj": subject})
	if err == nil {
		err = q.conn.PublishRequest(jetstream.DefaultAPIPrefix+"DIRECT.GET.OBJ_"+bucket, answers.Subject, request)
	}
	if err != nil {
		return nil
	}
	for size := uint64(0); size < info.Size; {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil || m.Header.Get("Nats-Subject") != subject || m.Header.Get("Nats-Num-Pending") == "" {
			return nil
		}
		list = append(list, m.Data)
		size += uint64(len(m.Data))
	}
	return list
}

// sumOfAll returns the SHA-256 of bytes that follow one another, in hexadecimal.
func sumOfAll(list [][]byte) string {
	h := sha256.New()
	for _, b := range list {
		_, _ = h.Write(b) // it never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// objectName returns the name of a file of a build ID in the store.
func objectName(id []byte, kind string) string { return hex.EncodeToString(id) + "." + kind }

// PutObject stores a file of a build ID for the workers: objects.Executable or
// objects.DebugInfo. They check the build ID themselves, and use it for jobs of this user; one
// that the account has is used for all who have none. sent is false where it was there already.
func (q *Queue) PutObject(ctx context.Context, id []byte, kind string, f io.ReadSeeker) (sent bool, err error) {
	sum, size, err := digest(f)
	if err != nil {
		return false, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	name := objectName(id, kind)
	if q.desk != nil {
		return q.desk.put(ctx, deskObjects, name, sum, size, f)
	}
	err = q.guard(ctx, func(ctx context.Context) error {
		sent, err = q.keep(ctx, q.objects, name, sum, f)
		return err
	})
	return sent, err
}

// DropObject removes a file of a build ID that the user has put.
func (q *Queue) DropObject(ctx context.Context, id []byte, kind string) error {
	name := objectName(id, kind)
	if q.desk != nil {
		return q.desk.drop(ctx, name)
	}
	return q.guard(ctx, func(ctx context.Context) error { return q.drop(ctx, name) })
}

func (q *Queue) drop(ctx context.Context, name string) error {
	err := q.objects.Delete(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	return err
}
