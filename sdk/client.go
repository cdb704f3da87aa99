// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// Client is an Architecture in another process: the engine's side of the
// connection. It is in this package because both sides encode alike; a plugin does not
// link it. Every call ends with its context. Answers are decoded, not yet checked: their
// Validate methods do that.
//
// An error is a *RemoteError where the architecture's own method failed, wraps
// the context's error where that ended, wraps ErrMalformed where the answer
// could not be decoded, and is gRPC's otherwise: then the process or the
// connection is gone.
type Client struct {
	rpc     pb.ArchitectureClient
	gone    context.Context // ends with the process
	ready   time.Duration
	engines engineServer
	ignored ignoredMembers

	mu         sync.Mutex
	attachment *attachment
}

// attachment is the plugin's connection to the engine, or an attempt to make it.
type attachment struct {
	settled chan struct{} // closed when the plugin is ready, or the rest is set
	// isUnwanted: the plugin asks nothing of the engine.
	isUnwanted bool
	err        error
}

var _ Architecture = (*Client)(nil)

// NewClient returns the architecture at the other end of a connection. gone ends with its
// process. ready is how long the process may take to be ready for requests to the engine;
// 0: as long as it likes. A call that needs it waits only until its own context ends.
func NewClient(gone context.Context, conn grpc.ClientConnInterface, ready time.Duration) *Client {
	return &Client{rpc: pb.NewArchitectureClient(conn), gone: gone, ready: ready}
}

// attach waits until the plugin is ready for requests to the engine, and reports whether
// it makes any. All calls share one connection, which outlives the call that began it; a
// connection that failed or ended is made again.
func (c *Client) attach(ctx context.Context) (isWanted bool, err error) {
	c.mu.Lock()
	a := c.attachment
	if a == nil {
		a = &attachment{settled: make(chan struct{})}
		c.attachment = a
		go c.serveEngine(a)
	}
	c.mu.Unlock()
	select {
	case <-a.settled:
		return !a.isUnwanted, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// serveEngine serves the engine until the connection ends. A failure ends the calls
// that offer the engine; where the process is gone, each call ends by itself.
func (c *Client) serveEngine(a *attachment) {
	ctx, cancel := context.WithCancelCause(c.gone)
	defer cancel(nil)
	isReady := false
	isLate := func() { cancel(fmt.Errorf("%w: no message within %s", ErrMalformed, c.ready)) }
	late := time.AfterFunc(cmp.Or(c.ready, math.MaxInt64), isLate)
	s, err := openEngineStream(ctx, c.rpc, &c.engines)
	if err == nil {
		err = s.serve(func() {
			late.Stop()
			isReady = true
			close(a.settled)
		})
	}
	late.Stop()
	code := status.Code(err)
	if !isReady && code == codes.Unimplemented {
		a.isUnwanted = true
		close(a.settled)
		return
	}
	c.mu.Lock()
	c.attachment = nil
	c.mu.Unlock()
	if err == nil && !isReady {
		err = fmt.Errorf("%w: the plugin ended it before its first message", ErrMalformed)
	}
	if err != nil {
		err = fmt.Errorf("ServeEngine: %w", err)
	}
	if !isReady {
		a.err = err
		close(a.settled)
	} else if err != nil && code != codes.Unavailable && c.gone.Err() == nil {
		c.engines.fail(err)
	}
}

// begin opens a session for a call that offers an engine. sessionCtx becomes the context
// of the call.
func (c *Client) begin(ctx context.Context, call string, e Engine) (sessionCtx context.Context, session uint64, end func(), err error) {
	if e == nil {
		return ctx, 0, func() {}, nil
	}
	isWanted, err := c.attach(ctx)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("%s: %w", call, err)
	}
	if !isWanted {
		return ctx, 0, func() {}, nil
	}
	ctx, session, end = c.engines.open(ctx, e)
	return ctx, session, end, nil
}

// unaryCall is a call whose answer is one message: Q is the encoded request, R the
// encoded answer and A the decoded one.
type unaryCall[Q any, R proto.Message, A any] struct {
	name      string
	engine    Engine // for the plugin's requests; nil: the call offers none
	request   Q
	session   *uint64 // in request, where the engine's session goes; nil: there is none
	rpc       func(context.Context, Q, ...grpc.CallOption) (R, error)
	maxAnswer int // bytes
	decode    func(R) (*A, error)
}

// do makes the call.
func (u *unaryCall[Q, R, A]) do(ctx context.Context, c *Client) (*A, error) {
	ctx, session, end, err := c.begin(ctx, u.name, u.engine)
	if err != nil {
		return nil, err
	}
	defer end()
	if u.session != nil {
		*u.session = session
	}
	r, err := u.rpc(ctx, u.request, grpc.MaxCallRecvMsgSize(u.maxAnswer), grpc.MaxCallSendMsgSize(maxRequest))
	if err != nil {
		return nil, callError(ctx, u.name, err)
	}
	c.ignored.look(r.ProtoReflect())
	a, err := u.decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.name, err)
	}
	return a, nil
}

// streamCall is a call whose answer comes in parts: Q is the encoded request and P an encoded
// part.
type streamCall[Q, P any] struct {
	name    string
	engine  Engine // for the plugin's requests; nil: the call offers none
	request Q
	session *uint64 // in request, where the engine's session goes
	rpc     func(context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[P], error)
	add     func(*P) error // decodes a part, and adds it to the answer
}

// do makes the call. The error is nil where at least one part came.
func (s *streamCall[Q, P]) do(ctx context.Context, c *Client) error {
	ctx, session, end, err := c.begin(ctx, s.name, s.engine)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	*s.session = session
	stream, err := s.rpc(ctx, s.request, grpc.MaxCallRecvMsgSize(maxAnswer), grpc.MaxCallSendMsgSize(maxRequest))
	if err != nil {
		return callError(ctx, s.name, err)
	}
	for isFirst := true; ; isFirst = false {
		part, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && isFirst:
			return fmt.Errorf("%s: %w: no answer", s.name, ErrMalformed)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return callError(ctx, s.name, err)
		}
		if m, ok := any(part).(proto.Message); ok {
			c.ignored.look(m.ProtoReflect())
		}
		if err := s.add(part); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
}

// Describe asks for the description, which is not validated.
func (c *Client) Describe(ctx context.Context) (*Description, error) {
	u := unaryCall[*pb.DescribeRequest, *pb.Description, Description]{
		name: "Describe", request: &pb.DescribeRequest{Feature: Feature}, rpc: c.rpc.Describe, maxAnswer: maxDescription, decode: decodeDescription,
	}
	return u.do(ctx, c)
}

// OpenTarget makes the call of Architecture.
func (c *Client) OpenTarget(ctx context.Context, e Engine, req *OpenTargetRequest) (*OpenTargetAnswer, error) {
	var a *OpenTargetAnswer
	var left int    // threads that may come yet
	var data uint64 // bytes of registers that came
	p := encodeOpenTargetRequest(req)
	s := streamCall[*pb.OpenTargetRequest, pb.OpenTargetPart]{
		name: "OpenTarget", engine: e, request: p, session: &p.Session, rpc: c.rpc.OpenTarget,
		add: func(part *pb.OpenTargetPart) (err error) {
			if a == nil {
				if part.GetAnswer() == nil {
					return fmt.Errorf("%w: OpenTargetPart: the first part is no answer", ErrMalformed)
				}
				a, left, err = decodeOpenTargetAnswer(part.GetAnswer())
				return err
			}
			threads, err := decodeTargetThreads(part.GetThreads())
			data += uint64(len(part.GetThreads().GetRegisters().GetData()))
			switch {
			case err != nil:
				return err
			case len(threads) == 0 || len(threads) > left:
				return fmt.Errorf("%w: OpenTargetPart.threads: %d threads, expected 1 to %d more", ErrMalformed, len(threads), left)
			case data > MaxRegisterData:
				return fmt.Errorf("%w: TargetThreads.registers: more than %d bytes in all", ErrMalformed, MaxRegisterData)
			}
			left -= len(threads)
			a.Threads = append(a.Threads, threads...)
			return nil
		},
	}
	if err := s.do(ctx, c); err != nil {
		return nil, err
	}
	if n := len(a.Threads); left > 0 {
		return nil, fmt.Errorf("%s: %w: OpenTargetAnswer.threads: %d, expected %d, the threads of the parts", s.name, ErrMalformed, n+left, n)
	}
	return a, nil
}

// OpenObject makes the call of Architecture.
func (c *Client) OpenObject(ctx context.Context, e Engine, req *OpenObjectRequest) (*OpenObjectAnswer, error) {
	var a *OpenObjectAnswer
	p, left := encodeOpenObjectRequest(req), maxRows(req)
	s := streamCall[*pb.OpenObjectRequest, pb.OpenObjectPart]{
		name: "OpenObject", engine: e, request: p, session: &p.Session, rpc: c.rpc.OpenObject,
		add: func(part *pb.OpenObjectPart) (err error) {
			switch {
			case a != nil:
				return appendRows(a, part.GetRows(), &left)
			case part.GetAnswer() == nil:
				return fmt.Errorf("%w: OpenObjectPart: the first part is no answer", ErrMalformed)
			}
			a, err = decodeOpenObjectAnswer(part.GetAnswer())
			return err
		},
	}
	if err := s.do(ctx, c); err != nil {
		return nil, err
	}
	return a, nil
}

// maxRows returns how many rows the tables of an answer may have in total: no more than
// the object has bytes of code, where its sections show that.
func maxRows(req *OpenObjectRequest) int {
	code := uint64(0)
	for i := range req.Sections {
		if s := &req.Sections[i]; elf.SectionFlag(s.Flags)&elf.SHF_EXECINSTR != 0 {
			code += min(s.Size, MaxBatch)
		}
	}
	if code == 0 {
		return maxRowsUnknown
	}
	return int(min(max(code, minRows), MaxBatch))
}

// The bounds of the rows of an answer for an object whose code is small, and for an
// object with an unknown amount of code.
const (
	minRows        = 1 << 16
	maxRowsUnknown = 1 << 20
)

// appendRows adds a part's rows to their table. left is how many may come yet.
func appendRows(a *OpenObjectAnswer, p *pb.TableRows, left *int) error {
	d := decoder{message: "TableRows"}
	if uint64(p.GetTable()) >= uint64(len(a.Tables)) {
		d.fail("table", "%d, expected less than %d", p.GetTable(), len(a.Tables))
		return d.err
	}
	n := len(p.GetRows().GetStarts())
	if n > *left {
		d.fail("rows", "%d more than the object can have", n-*left)
		return d.err
	}
	rows, err := decodeRows(p.GetRows())
	d.wrap("rows", err)
	if len(rows) == 0 {
		d.fail("rows", "none")
	}
	if d.err != nil {
		return d.err
	}
	*left -= n
	t := &a.Tables[p.GetTable()]
	if t.Rows == nil {
		t.Rows = rows
	} else {
		t.Rows = append(t.Rows, rows...)
	}
	return nil
}

// FrameRules makes the call of Architecture.
func (c *Client) FrameRules(ctx context.Context, e Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
	p := encodeFrameRulesRequest(req)
	u := unaryCall[*pb.FrameRulesRequest, *pb.FrameRulesAnswer, FrameRulesAnswer]{
		name: "FrameRules", engine: e, request: p, session: &p.Session, rpc: c.rpc.FrameRules, maxAnswer: maxAnswer, decode: decodeFrameRulesAnswer,
	}
	return u.do(ctx, c)
}

// BindThreads makes the call of Architecture.
func (c *Client) BindThreads(ctx context.Context, e Engine, req *BindThreadsRequest) (*BindThreadsAnswer, error) {
	const name = "BindThreads"
	p, err := encodeBindThreadsRequest(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	u := unaryCall[*pb.BindThreadsRequest, *pb.BindThreadsAnswer, BindThreadsAnswer]{
		name: name, engine: e, request: p, session: &p.Session, rpc: c.rpc.BindThreads, maxAnswer: maxAnswer, decode: decodeBindThreadsAnswer,
	}
	return u.do(ctx, c)
}

// Translate makes the call of Architecture.
func (c *Client) Translate(ctx context.Context, e Engine, req *TranslateRequest) (*TranslateAnswer, error) {
	p := encodeTranslateRequest(req)
	u := unaryCall[*pb.TranslateRequest, *pb.TranslateAnswer, TranslateAnswer]{
		name: "Translate", engine: e, request: p, session: &p.Session, rpc: c.rpc.Translate, maxAnswer: maxAnswer, decode: decodeTranslateAnswer,
	}
	return u.do(ctx, c)
}

// ClassifyReturn makes the call of Architecture.
func (c *Client) ClassifyReturn(ctx context.Context, req *ClassifyReturnRequest) (*ClassifyReturnAnswer, error) {
	const name = "ClassifyReturn"
	p, err := encodeClassifyReturnRequest(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	u := unaryCall[*pb.ClassifyReturnRequest, *pb.ClassifyReturnAnswer, ClassifyReturnAnswer]{
		name: name, request: p, rpc: c.rpc.ClassifyReturn, maxAnswer: maxAnswer, decode: decodeClassifyReturnAnswer,
	}
	return u.do(ctx, c)
}

// Disassemble makes the call of Architecture.
func (c *Client) Disassemble(ctx context.Context, req *DisassembleRequest) (*DisassembleAnswer, error) {
	u := unaryCall[*pb.DisassembleRequest, *pb.DisassembleAnswer, DisassembleAnswer]{
		name: "Disassemble", request: encodeDisassembleRequest(req), rpc: c.rpc.Disassemble, maxAnswer: maxAnswer, decode: decodeDisassembleAnswer,
	}
	return u.do(ctx, c)
}
