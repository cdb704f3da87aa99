// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

const (
	maxHeader    = 64 << 10 // bytes of an answer's headers
	maxRedirects = 10       // of a request
)

// LeastBytes is the number of bytes that a server has to send in Options.Timeout.
const LeastBytes = 100 << 10

// newHTTP makes the HTTP client of a Client.
func newHTTP(o *Options) *http.Client {
	dialer := net.Dialer{Timeout: o.Timeout}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: o.Timeout,
	}
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		first, last := via[0].URL, via[len(via)-1].URL
		switch {
		case len(via) >= maxRedirects:
			return fmt.Errorf("%w more than %d times", errRedirect, maxRedirects)
		case r.URL.Scheme != "http" && r.URL.Scheme != "https":
			return fmt.Errorf("%w to %s:, expected http: or https:", errRedirect, r.URL.Scheme)
		case last.Scheme == "https" && r.URL.Scheme == "http":
			return fmt.Errorf("%w from https: to http:", errRedirect)
		case r.URL.Host != first.Host:
			for name := range o.Headers {
				r.Header.Del(name)
			}
		}
		return nil
	}}
}

// download writes a server's file to an open file, and returns its time of modification;
// the zero time where the server does not tell.
func (c *Client) download(ctx context.Context, u *url.URL, f object.RemoteFile, file *os.File) (modified time.Time, err error) {
	c.log("%s: asking", u.Redacted())
	if u.Scheme == "file" {
		return c.copyFile(u.Path, f, file)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := newWatch(c.options.Timeout, inBrackets(c.protocol.Timeout), cancel)
	defer w.stop()
	r, err := c.request(ctx, u)
	if err != nil {
		return time.Time{}, err
	}
	answer, err := c.http.Do(r) //nolint:gosec // the user named the server
	if errors.Is(err, errRedirect) {
		return time.Time{}, reasonOf(ctx, err)
	} else if err != nil {
		return time.Time{}, &laterError{reasonOf(ctx, err), isSilent(ctx, err)}
	}
	defer answer.Body.Close()
	size, err := c.sizeOf(answer, f)
	if err != nil {
		return time.Time{}, err
	}
	body, end, err := decoded(answer)
	if err != nil {
		return time.Time{}, err
	}
	defer end()
	t := &transfer{Transfer: Transfer{RemoteFile: f, Server: u.Host, Size: max(size, 0)}, client: c, watch: w}
	n, err := t.copy(file, body, c.maxSize(f))
	var tooLarge *sizeError
	switch {
	case errors.As(err, &tooLarge):
		return time.Time{}, err
	case err != nil:
		return time.Time{}, &laterError{fmt.Errorf("the answer was cut after %d bytes: %w", n, reasonOf(ctx, err)), isSilent(ctx, err)}
	case size >= 0 && n != size:
		return time.Time{}, &laterError{fmt.Errorf("the answer has %d bytes, expected %d", n, size), false}
	case n == 0:
		return time.Time{}, errors.New("the answer is empty")
	}
	if modified, err = http.ParseTime(answer.Header.Get("Last-Modified")); err != nil {
		return time.Time{}, nil // the server does not tell it
	}
	return modified, nil
}

func (c *Client) request(ctx context.Context, u *url.URL) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range c.options.Headers {
		r.Header[name] = values
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "unwindd")
	}
	r.Header.Set("Accept-Encoding", encodings)
	if c.options.MaxSize != DefaultMaxSize && c.protocol.MaxSizeHeader != "" {
		r.Header.Set(c.protocol.MaxSizeHeader, strconv.FormatInt(c.options.MaxSize, 10))
	}
	return r, nil
}

func (c *Client) maxSize(f object.RemoteFile) int64 {
	if c.protocol.MaxSize != nil {
		if most := c.protocol.MaxSize(f); most > 0 {
			return min(c.options.MaxSize, most)
		}
	}
	return c.options.MaxSize
}

// sizeError is the error of a file that is larger than wanted.
type sizeError struct{ size, most int64 }

func (e *sizeError) Error() string {
	if e.size < 0 {
		return fmt.Sprintf("the file has more than %d bytes", e.most)
	}
	return fmt.Sprintf("the file has %d bytes, expected at most %d", e.size, e.most)
}

// sizeOf checks the status and headers of an answer, and returns the size of the file in
// bytes; -1 where the server does not tell.
func (c *Client) sizeOf(answer *http.Response, f object.RemoteFile) (int64, error) {
	switch status := answer.StatusCode; {
	case status == http.StatusOK:
	case status == http.StatusNotFound || status == http.StatusGone:
		return 0, errAbsent
	case status == http.StatusNotAcceptable: // debuginfod(8): X-DEBUGINFOD-MAXSIZE
		return 0, &sizeError{-1, c.options.MaxSize}
	case status >= 500:
		return 0, &laterError{fmt.Errorf("the server answers %d %s", status, http.StatusText(status)), false}
	default:
		return 0, fmt.Errorf("the server answers %d %s", status, http.StatusText(status))
	}
	size := answer.ContentLength
	if isEncoded(answer) {
		size = -1
	}
	if told, err := strconv.ParseInt(answer.Header.Get(c.protocol.SizeHeader), 10, 64); err == nil && told >= 0 && c.protocol.SizeHeader != "" {
		size = told
	}
	if size > c.maxSize(f) {
		return 0, &sizeError{size, c.maxSize(f)}
	}
	endsByClosing := answer.ContentLength < 0 && len(answer.TransferEncoding) == 0 && answer.ProtoMajor == 1 && !isEncoded(answer)
	if size < 0 && endsByClosing && c.protocol.NeedsSize != nil && c.protocol.NeedsSize(f) {
		return 0, errors.New("the answer says nowhere how long it is, so a part cannot be told from the whole")
	}
	return size, nil
}

// copyFile copies the file that a file: URL names.
func (c *Client) copyFile(path string, f object.RemoteFile, file *os.File) (modified time.Time, err error) {
	source, err := os.OpenFile(host.PathOfURL(path), os.O_RDONLY|host.WithoutWaiting, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return time.Time{}, errAbsent
	} else if err != nil {
		return time.Time{}, WithoutPath(err)
	}
	defer source.Close()
	info, err := source.Stat()
	switch most := c.maxSize(f); {
	case err != nil:
		return time.Time{}, WithoutPath(err)
	case !info.Mode().IsRegular():
		return time.Time{}, object.ErrNotRegular
	case info.Size() > most:
		return time.Time{}, &sizeError{info.Size(), most}
	case info.Size() == 0:
		return time.Time{}, object.ErrEmpty
	}
	t := &transfer{Transfer: Transfer{RemoteFile: f, Server: "file:", Size: info.Size()}, client: c}
	n, err := t.copy(file, source, c.maxSize(f))
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%d bytes were read, expected %d", n, info.Size())
	}
	return info.ModTime(), err
}

// transfer copies an answer into a file.
type transfer struct {
	Transfer
	client *Client
	watch  *watch // nil: none
}

// copy copies until the end, and not more than most bytes.
func (t *transfer) copy(w io.Writer, r io.Reader, most int64) (n int64, err error) {
	buffer := make([]byte, 64<<10)
	t.report(false)
	defer t.report(true)
	for {
		read, err := r.Read(buffer)
		if t.Bytes += int64(read); t.Bytes > most {
			return t.Bytes, &sizeError{-1, most}
		}
		if read > 0 {
			t.watch.has(read)
			if _, err := w.Write(buffer[:read]); err != nil {
				return t.Bytes, WithoutPath(err)
			}
			t.report(false)
		}
		if errors.Is(err, io.EOF) {
			return t.Bytes, nil
		} else if err != nil {
			return t.Bytes, err
		}
	}
}

func (t *transfer) report(done bool) {
	if t.client.options.Progress != nil {
		t.Done = done
		t.client.options.Progress(t.Transfer)
	}
}

// errSlow is the error of a server that sent too little in its time.
var errSlow = errors.New("too slow")

// watch ends a request when too little has come for a time.
type watch struct {
	timer *time.Timer
	after time.Duration
	bytes int // since the timer was set
}

func newWatch(after time.Duration, setting string, cancel context.CancelCauseFunc) *watch {
	if after <= 0 {
		return nil
	}
	because := fmt.Errorf("%w: less than %d bytes came in %v%s", errSlow, LeastBytes, after, setting)
	return &watch{timer: time.AfterFunc(after, func() { cancel(because) }), after: after}
}

func (w *watch) stop() {
	if w != nil {
		w.timer.Stop()
	}
}

// has counts received bytes.
func (w *watch) has(bytes int) {
	if w == nil {
		return
	}
	if w.bytes += bytes; w.bytes >= LeastBytes {
		w.bytes = 0
		w.timer.Reset(w.after)
	}
}

// reasonOf returns why a request failed: the cause that ended it, or the network's error.
func reasonOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return WithoutURL(err) // it stands beside the reason
}

// isSilent reports whether a server did not answer, so that asking it for other files would
// take as long.
func isSilent(ctx context.Context, err error) bool {
	var operation *net.OpError
	var name *net.DNSError
	return errors.Is(context.Cause(ctx), errSlow) || errors.As(err, &name) ||
		errors.As(err, &operation) && operation.Op == "dial"
}
