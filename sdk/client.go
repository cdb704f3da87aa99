// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// A Client is an Architecture in another process: what Dispense(PluginName) of
// go-plugin's client gives. Every call ends with its context. What an answer
// says is decoded, not yet judged: the Validate methods of the answers do that.
//
// An error is a *RemoteError where the architecture's own method failed, wraps
// the context's error where that ended, wraps ErrMalformed where the answer
// could not be decoded, and is gRPC's otherwise: then the process or the
// connection is gone.
type Client struct {
	rpc    pb.ArchitectureClient
	broker *plugin.GRPCBroker
	gone   context.Context // ends with the process
	engine engineServer

	mu         sync.Mutex
	attachment *attachment
}

// An attachment is an attempt to have the plugin connect to the engine.
type attachment struct {
	done chan struct{}
	err  error // set when done is closed
}

var _ Architecture = (*Client)(nil)

func newClient(gone context.Context, broker *plugin.GRPCBroker, conn *grpc.ClientConn) *Client {
	return &Client{rpc: pb.NewArchitectureClient(conn), broker: broker, gone: gone}
}

// attachTimeout is how long a plugin may take to connect to the engine. A call
// that needs the connection waits no longer than it lasts itself.
const attachTimeout = time.Minute

// attach waits until the plugin is connected to the engine. All calls share
// one attempt, which goes on when the call that began it ends; one that failed
// is made again.
func (c *Client) attach(ctx context.Context) error {
	c.mu.Lock()
	a := c.attachment
	if a != nil {
		select {
		case <-a.done:
			if a.err != nil {
				a = nil
			}
		default:
		}
	}
	if a == nil {
		a = &attachment{done: make(chan struct{})}
		c.attachment = a
		go c.serveEngine(a)
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serveEngine serves the engine at the broker and has the plugin dial it.
func (c *Client) serveEngine(a *attachment) {
	defer close(a.done)
	var once sync.Once
	serving := make(chan *grpc.Server, 1)
	id := c.broker.NextId()
	go func() {
		defer once.Do(func() { close(serving) })
		c.broker.AcceptAndServe(id, func(opts []grpc.ServerOption) *grpc.Server {
			s := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(maxAnswer))...)
			pb.RegisterEngineServer(s, &c.engine)
			once.Do(func() { serving <- s; close(serving) })
			return s
		})
	}()
	s, ok := <-serving
	if !ok {
		a.err = fmt.Errorf("the engine cannot be served to the plugin: its connection is gone")
		return
	}
	context.AfterFunc(c.gone, s.Stop)
	ctx, cancel := context.WithTimeout(c.gone, attachTimeout)
	defer cancel()
	if _, err := c.rpc.Attach(ctx, &pb.AttachRequest{BrokerId: id}); err != nil {
		s.Stop()
		a.err = callError(ctx, "Attach", err)
	}
}

// begin opens a session for a call that offers an engine.
func (c *Client) begin(ctx context.Context, call string, e Engine) (session uint64, end func(), err error) {
	if e == nil {
		return 0, func() {}, nil
	}
	if err := c.attach(ctx); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", call, err)
	}
	session, end = c.engine.open(ctx, e)
	return session, end, nil
}

// call makes a call with one message for an answer. p is the encoded request,
// and err what encoding it gave.
func call[P, R, A any](ctx context.Context, c *Client, name string, e Engine, p P, err error,
	setSession func(uint64), rpc func(context.Context, P, ...grpc.CallOption) (R, error), most int, decode func(R) (*A, error),
) (*A, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	session, end, err := c.begin(ctx, name, e)
	if err != nil {
		return nil, err
	}
	defer end()
	if setSession != nil {
		setSession(session)
	}
	r, err := rpc(ctx, p, grpc.MaxCallRecvMsgSize(most), grpc.MaxCallSendMsgSize(maxRequest))
	if err != nil {
		return nil, callError(ctx, name, err)
	}
	a, err := decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// Describe asks for the description, which is not validated.
func (c *Client) Describe(ctx context.Context) (*Description, error) {
	return call(ctx, c, "Describe", nil, &pb.DescribeRequest{}, nil, nil, c.rpc.Describe, maxDescription, decodeDescription)
}

// OpenTarget makes the call of Architecture.
func (c *Client) OpenTarget(ctx context.Context, e Engine, req *OpenTargetRequest) (*OpenTargetAnswer, error) {
	const name = "OpenTarget"
	session, end, err := c.begin(ctx, name, e)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := encodeOpenTargetRequest(req)
	p.Session = session
	stream, err := c.rpc.OpenTarget(ctx, p, grpc.MaxCallRecvMsgSize(maxAnswer), grpc.MaxCallSendMsgSize(maxRequest))
	if err != nil {
		return nil, callError(ctx, name, err)
	}
	part, err := stream.Recv()
	if err != nil {
		return nil, streamError(ctx, name, err)
	}
	head := part.GetAnswer()
	if head == nil {
		return nil, fmt.Errorf("%s: %w: OpenTargetPart: the first part is no answer", name, ErrMalformed)
	}
	a, left, err := decodeOpenTargetAnswer(head)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var data uint64
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, streamError(ctx, name, err)
		}
		threads, err := decodeTargetThreads(part.GetThreads())
		data += uint64(len(part.GetThreads().GetRegisters().GetData()))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case len(threads) == 0 || len(threads) > left:
			return nil, fmt.Errorf("%s: %w: OpenTargetPart.threads: %d threads, expected 1 to %d more", name, ErrMalformed, len(threads), left)
		case data > MaxRegisterData:
			return nil, fmt.Errorf("%s: %w: TargetThreads.registers: more than %d bytes in all", name, ErrMalformed, MaxRegisterData)
		}
		left -= len(threads)
		a.Threads = append(a.Threads, threads...)
	}
	if left > 0 {
		return nil, fmt.Errorf("%s: %w: OpenTargetAnswer.threads: %d, expected %d, the threads of the parts", name, ErrMalformed, len(a.Threads)+left, len(a.Threads))
	}
	return a, nil
}

// OpenObject makes the call of Architecture.
func (c *Client) OpenObject(ctx context.Context, e Engine, req *OpenObjectRequest) (*OpenObjectAnswer, error) {
	const name = "OpenObject"
	session, end, err := c.begin(ctx, name, e)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := encodeOpenObjectRequest(req)
	p.Session = session
	stream, err := c.rpc.OpenObject(ctx, p, grpc.MaxCallRecvMsgSize(maxAnswer), grpc.MaxCallSendMsgSize(maxRequest))
	if err != nil {
		return nil, callError(ctx, name, err)
	}
	part, err := stream.Recv()
	if err != nil {
		return nil, streamError(ctx, name, err)
	}
	if part.GetAnswer() == nil {
		return nil, fmt.Errorf("%s: %w: OpenObjectPart: the first part is no answer", name, ErrMalformed)
	}
	a, err := decodeOpenObjectAnswer(part.GetAnswer())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	left := maxRows(req)
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, streamError(ctx, name, err)
		}
		if err := appendRows(a, part.GetRows(), &left); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
}

// maxRows is how many rows the tables of an answer may have in all: no more than
// the object has bytes of code, where its sections tell that.
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

// Bounds of the rows of an answer: of an object whose code is small, and of one
// that does not say how much code it has.
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

// streamError is callError for a stream, which must not end before its answer.
func streamError(ctx context.Context, name string, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w: no answer", name, ErrMalformed)
	}
	return callError(ctx, name, err)
}

// FrameRules makes the call of Architecture.
func (c *Client) FrameRules(ctx context.Context, e Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
	p := encodeFrameRulesRequest(req)
	return call(ctx, c, "FrameRules", e, p, nil, func(s uint64) { p.Session = s }, c.rpc.FrameRules, maxAnswer, decodeFrameRulesAnswer)
}

// BindThreads makes the call of Architecture.
func (c *Client) BindThreads(ctx context.Context, e Engine, req *BindThreadsRequest) (*BindThreadsAnswer, error) {
	p, err := encodeBindThreadsRequest(req)
	return call(ctx, c, "BindThreads", e, p, err, func(s uint64) { p.Session = s }, c.rpc.BindThreads, maxAnswer, decodeBindThreadsAnswer)
}

// Translate makes the call of Architecture.
func (c *Client) Translate(ctx context.Context, e Engine, req *TranslateRequest) (*TranslateAnswer, error) {
	p := encodeTranslateRequest(req)
	return call(ctx, c, "Translate", e, p, nil, func(s uint64) { p.Session = s }, c.rpc.Translate, maxAnswer, decodeTranslateAnswer)
}

// ClassifyReturn makes the call of Architecture.
func (c *Client) ClassifyReturn(ctx context.Context, req *ClassifyReturnRequest) (*ClassifyReturnAnswer, error) {
	p, err := encodeClassifyReturnRequest(req)
	return call(ctx, c, "ClassifyReturn", nil, p, err, nil, c.rpc.ClassifyReturn, maxAnswer, decodeClassifyReturnAnswer)
}

// Disassemble makes the call of Architecture.
func (c *Client) Disassemble(ctx context.Context, req *DisassembleRequest) (*DisassembleAnswer, error) {
	p := encodeDisassembleRequest(req)
	return call(ctx, c, "Disassemble", nil, p, nil, nil, c.rpc.Disassemble, maxAnswer, decodeDisassembleAnswer)
}
