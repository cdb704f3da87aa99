// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// ClientOptions tell how to reach a server.
type ClientOptions struct {
	// Address is unix:PATH, HOST:PORT, or https://HOST:PORT.
	Address string
	// Token is shown to the server; "": none. It goes over TLS, or stays on this machine.
	Token string
}

// ErrAddress is wrapped by the errors of options that have no meaning.
var ErrAddress = errors.New("expected unix:PATH, HOST:PORT or https://HOST:PORT")

// Client asks one server, `unwindd serve`, to do the work of an engine. A target stays here: the
// server asks for the parts that it needs. A Client may be used concurrently.
type Client struct {
	address string
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
	c := &Client{address: o.Address}
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

	isAbsent bool // no server is there
}

func (e *Error) Error() string {
	switch {
	case e.Code == codes.InvalidArgument || e.Code == codes.FailedPrecondition:
		return e.Detail // it is about the target or the request
	case e.isAbsent:
		return fmt.Sprintf("no server answers at %s (%s): start one with `unwindd serve --listen %s`", e.Server, e.Detail, e.Server)
	}
	return fmt.Sprintf("server %s: %s", e.Server, e.Detail)
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
		detail = "it does not know what it is asked for: it is of an older release"
	case detail == "":
		detail = s.Code().String()
	}
	e := &Error{Server: c.address, Code: s.Code(), Detail: detail}
	if s.Code() == codes.Unavailable && strings.Contains(detail, dialing) {
		parts := strings.Split(strings.TrimRight(detail, `"`), ": ")
		e.Detail, e.isAbsent = parts[len(parts)-1], true
	}
	return e
}

// dialing is in gRPC's description of a server that is not there.
const dialing = "Error while dialing"

// headPart bounds the bytes of a head in a message.
const headPart = 256 << 10

// Walk has the server walk a target, which must not be used meanwhile, and writes the
// report. The report's end has facts that are not in the report. The error wraps
// engine.ErrNotWalked where nothing could be walked.
func (c *Client) Walk(ctx context.Context, t *engine.Target, j *job.Stack, write job.WriteOptions, w io.Writer) (*pb.ReportEnd, error) {
	head, err := remote.HeadOf(t).Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: its head: %w", t.Info().Path, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := c.calls.Walk(ctx)
	if err != nil {
		return nil, c.failure(err)
	}
	o := &pb.WalkOptions{
		Stack: j.StackOptions, Verbose: write.Verbose, Color: write.Color, WithPath: j.WithPath, HeadSize: uint64(len(head)),
		MostBytes: uint32(min(max(write.Most, 0), math.MaxUint32)), //nolint:gosec // in range
	}
	if err := sendHead(st, o, head); err != nil && !errors.Is(err, io.EOF) { // after io.EOF, Recv returns the reason
		return nil, c.failure(err)
	}
	responder := remote.NewResponder(t)
	defer responder.Close()
	for {
		m, err := st.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, c.failure(err)
		}
		switch part := m.GetPart().(type) {
		case *pb.WalkResponse_Question:
			err = responder.Answer(part.Question, func(a *pb.Answer) error { return st.Send(&pb.WalkRequest{Part: &pb.WalkRequest_Answer{Answer: a}}) })
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, c.failure(err)
			}
		case *pb.WalkResponse_Data:
			if _, err := w.Write(part.Data); err != nil {
				return nil, err
			}
		case *pb.WalkResponse_End:
			_ = st.CloseSend() // there are no more answers
			return part.End, unwalked(part.End)
		}
	}
}

func sendHead(st grpc.BidiStreamingClient[pb.WalkRequest, pb.WalkResponse], o *pb.WalkOptions, head []byte) error {
	err := st.Send(&pb.WalkRequest{Part: &pb.WalkRequest_Options{Options: o}})
	for err == nil && len(head) > 0 {
		n := min(len(head), headPart)
		err = st.Send(&pb.WalkRequest{Part: &pb.WalkRequest_Head{Head: head[:n]}})
		head = head[n:]
	}
	return err
}

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
