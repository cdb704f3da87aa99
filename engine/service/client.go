// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// ClientOptions tell how to reach a server.
type ClientOptions struct {
	// Address is unix:PATH, HOST:PORT, or https://HOST:PORT.
	Address string
	// Token is shown to the server; "": none. It goes over TLS, or stays on this machine.
	Token string
	// Log, where it is not nil, receives why a call waits, a sentence at a time.
	Log func(text string)
}

// ErrAddress is wrapped by the errors of options that have no meaning.
var ErrAddress = errors.New("expected unix:PATH, HOST:PORT or https://HOST:PORT")

// Client asks one server, `unwindd serve`, to do the work of an engine. A target stays here: the
// server asks for the parts that it needs. A Client may be used concurrently.
type Client struct {
	address string
	log     func(text string) // nil: nothing is said
	conn    *grpc.ClientConn
	calls   pb.UnwinddClient
	sent    atomic.Int64
	got     atomic.Int64
}

// NewClient makes a client. The server is reached when it is first asked.
func NewClient(o ClientOptions) (*Client, error) {
	target, secure, isLocal, err := o.target()
	if err != nil {
		return nil, err
	}
	c := &Client{address: o.Address, log: o.Log}
	dial := []grpc.DialOption{
		grpc.WithStatsHandler(byteCounter{c}), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxClientMessage)), grpc.WithDisableServiceConfig(),
		// The proxies of the environment are for the web.
		grpc.WithNoProxy(),
	}
	switch {
	case secure != nil:
		dial = append(dial, grpc.WithTransportCredentials(credentials.NewTLS(secure)))
	default:
		dial = append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	if strings.HasPrefix(target, "unix:") {
		dial = append(dial, grpc.WithAuthority("localhost"))
	}
	if o.Token != "" {
		if secure == nil && !isLocal {
			return nil, fmt.Errorf("%s: a token is not sent over a network without TLS: %w", o.Address, errors.New("expected https://HOST:PORT"))
		}
		dial = append(dial, grpc.WithPerRPCCredentials(callToken(o.Token)))
	}
	if c.conn, err = grpc.NewClient(target, dial...); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", o.Address, ErrAddress, err)
	}
	c.calls = pb.NewUnwinddClient(c.conn)
	return c, nil
}

// maxClientMessage bounds a message to a Client.
const maxClientMessage = 4 << 20

// target returns gRPC's syntax of the address. secure is nil without TLS.
func (o *ClientOptions) target() (target string, secure *tls.Config, isLocal bool, err error) {
	wrong := fmt.Errorf("%q: %w", o.Address, ErrAddress)
	if path, ok := strings.CutPrefix(o.Address, "unix:"); ok {
		if path == "" {
			return "", nil, false, wrong
		}
		return "unix:" + path, nil, true, nil
	}
	place := o.Address
	if strings.Contains(place, "://") {
		u, err := url.Parse(place)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" || u.User != nil || u.RawQuery != "" {
			return "", nil, false, wrong
		}
		if place = u.Host; u.Port() == "" {
			place = net.JoinHostPort(u.Hostname(), "443")
		}
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	host, port, err := net.SplitHostPort(place)
	if err != nil || host == "" || port == "" {
		return "", nil, false, wrong
	}
	ip := net.ParseIP(host)
	return "dns:///" + place, secure, host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// callToken is a credential of each call.
type callToken string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t callToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: NewClient has ensured it.
func (t callToken) RequireTransportSecurity() bool { return false }

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Address returns the address of the server, as the options have it.
func (c *Client) Address() string { return c.address }

// Sent returns the number of bytes of messages that went to the server.
func (c *Client) Sent() int64 { return c.sent.Load() }

// Received returns the number of bytes of messages that came from the server.
func (c *Client) Received() int64 { return c.got.Load() }

// byteCounter counts the bytes of a Client.
type byteCounter struct{ *Client }

// HandleRPC implements stats.Handler.
func (c byteCounter) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.OutPayload:
		c.sent.Add(int64(s.WireLength))
	case *stats.InPayload:
		c.got.Add(int64(s.WireLength))
	}
}

// TagRPC, TagConn and HandleConn implement stats.Handler.
func (byteCounter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (byteCounter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (byteCounter) HandleConn(context.Context, stats.ConnStats)                       {}

// Error is the server's reason for refusing or failing a request.
type Error struct {
	Server string
	Code   codes.Code
	Detail string // a sentence
	// Retry is the time after which a busy server wants to be asked again; 0: it is not busy.
	Retry time.Duration

	isAbsent bool // no server is there
}

func (e *Error) Error() string {
	switch {
	case e.Code == codes.InvalidArgument || e.Code == codes.FailedPrecondition:
		return e.Detail // it is about the target or the request
	case e.isAbsent:
		return fmt.Sprintf("no server answers at %s (%s): start one with `unwindd serve --listen %s`", e.Server, e.Detail, e.Server)
	}
	if e.Retry > 0 {
		return fmt.Sprintf("server %s: %s: ask again in %v", e.Server, e.Detail, e.Retry)
	}
	return fmt.Sprintf("server %s: %s", e.Server, e.Detail)
}

// IsOfServer reports whether the error is about the server and not about one target: the next
// target would have it, too.
func (e *Error) IsOfServer() bool {
	switch e.Code {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.DeadlineExceeded, codes.Internal:
		return false
	case codes.ResourceExhausted:
		return e.Retry > 0 // else the target is too large
	}
	return true
}

// IsUsage reports whether the request has no meaning.
func (e *Error) IsUsage() bool { return e.Code == codes.InvalidArgument }

// failure turns the error of a call into the caller's.
func (c *Client) failure(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return fmt.Errorf("server %s: %w", c.address, err)
	}
	detail := s.Message()
	switch {
	case s.Code() == codes.Unimplemented:
		detail = olderServer
	case detail == "":
		detail = s.Code().String()
	}
	e := &Error{Server: c.address, Code: s.Code(), Detail: detail, Retry: retryOf(s)}
	if s.Code() == codes.Unavailable && strings.Contains(detail, dialing) {
		parts := strings.Split(strings.TrimRight(detail, `"`), ": ")
		e.Detail, e.isAbsent = parts[len(parts)-1], true
	}
	return e
}

// olderServer is the failure of a server that lacks what this release has.
const olderServer = "it does not know what it is asked for: it is of an older release"

// older is the error of a server that answers what an older one answers.
func (c *Client) older() error {
	return &Error{Server: c.address, Code: codes.Unimplemented, Detail: olderServer}
}

// retryOf is the time after which a server wants to be asked again; 0: it does not say.
func retryOf(s *status.Status) time.Duration {
	if s.Code() != codes.ResourceExhausted {
		return 0
	}
	for _, d := range s.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok && r.GetRetryDelay().IsValid() {
			return max(r.GetRetryDelay().AsDuration(), 0)
		}
	}
	return 0
}

// Bounds on waiting for a busy server: for all, and each time.
const (
	mostPatience = time.Minute
	leastWait    = 100 * time.Millisecond
	mostWait     = 10 * time.Second
)

// patiently does a call, and again as long as the server is busy and the call has changed nothing here:
// ask reports whether it may be done again.
func (c *Client) patiently(ctx context.Context, ask func() (mayRepeat bool, err error)) error {
	var waited time.Duration
	for {
		mayRepeat, err := ask()
		var e *Error
		if !errors.As(err, &e) || e.Retry == 0 || !mayRepeat {
			return err
		}
		wait := min(max(e.Retry, leastWait), mostWait)
		if waited += wait; waited > mostPatience {
			return err
		}
		if c.log != nil {
			c.log(fmt.Sprintf("%v", err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// dialing is in gRPC's description of a server that is not there.
const dialing = "Error while dialing"

// unwalked returns the error of a report in which nothing was walked.
func unwalked(end *pb.ReportEnd) error {
	if end.GetUnwalked() == "" {
		return nil
	}
	return NotWalked(end.GetUnwalked())
}

// NotWalked makes an engine.ErrNotWalked with the text of another process.
func NotWalked(why string) error { return notWalkedError(why) }

// notWalkedError is an engine.ErrNotWalked with a text of its own.
type notWalkedError string

func (e notWalkedError) Error() string { return string(e) }

// Is reports whether it is engine.ErrNotWalked.
func (notWalkedError) Is(err error) bool { return err == trace.ErrNotWalked }
