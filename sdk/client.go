// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"debug/elf"
	"fmt"
	"time"

	"google.golang.org/grpc"

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
//
// A call that the plugin does not serve answers ErrNotImplemented; WithBase makes Base's
// answer of that.
type Client struct {
	link
	rpc pb.ArchitectureClient
}

var _ Architecture = (*Client)(nil)

// NewClient returns the architecture at the other end of a connection. gone ends with its
// process. ready is how long the process may take to be ready for requests to the engine;
// 0: as long as it likes. A call that needs it waits only until its own context ends.
func NewClient(gone context.Context, conn grpc.ClientConnInterface, ready time.Duration) *Client {
	rpc := pb.NewArchitectureClient(conn)
	return &Client{link: link{serve: rpc.ServeEngine, gone: gone, ready: ready}, rpc: rpc}
}

// Describe asks for the description, which is not validated.
func (c *Client) Describe(ctx context.Context) (*Description, error) {
	u := unaryCall[*pb.DescribeRequest, *pb.Description, Description]{
		name: "Describe", request: &pb.DescribeRequest{Feature: Feature}, rpc: c.rpc.Describe, maxAnswer: maxDescription, decode: decodeDescription,
	}
	return u.do(ctx, &c.link)
}

// OpenTarget makes the call of Architecture.
func (c *Client) OpenTarget(ctx context.Context, e Engine, req *OpenTargetRequest) (*OpenTargetAnswer, error) {
	var a *OpenTargetAnswer
	var left int    // threads that may come yet
	var data uint64 // bytes of registers that came
	var lanes int   // with states of their own
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
			data += uint64(len(part.GetThreads().GetRegisters().GetData()) + len(part.GetThreads().GetLaneStates().GetRegisters().GetData()))
			lanes += len(part.GetThreads().GetLaneStates().GetLanes())
			switch {
			case err != nil:
				return err
			case len(threads) == 0 || len(threads) > left:
				return fmt.Errorf("%w: OpenTargetPart.threads: %d threads, expected 1 to %d more", ErrMalformed, len(threads), left)
			case data > MaxRegisterData:
				return fmt.Errorf("%w: TargetThreads.registers: more than %d bytes in all", ErrMalformed, MaxRegisterData)
			case lanes > MaxBatch:
				return fmt.Errorf("%w: TargetThreads.lane_states: more than %d in all", ErrMalformed, MaxBatch)
			}
			left -= len(threads)
			a.Threads = append(a.Threads, threads...)
			return nil
		},
	}
	if err := s.do(ctx, &c.link); err != nil {
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
	if err := s.do(ctx, &c.link); err != nil {
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
	return u.do(ctx, &c.link)
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
	return u.do(ctx, &c.link)
}

// Translate makes the call of Architecture.
func (c *Client) Translate(ctx context.Context, e Engine, req *TranslateRequest) (*TranslateAnswer, error) {
	p := encodeTranslateRequest(req)
	u := unaryCall[*pb.TranslateRequest, *pb.TranslateAnswer, TranslateAnswer]{
		name: "Translate", engine: e, request: p, session: &p.Session, rpc: c.rpc.Translate, maxAnswer: maxAnswer, decode: decodeTranslateAnswer,
	}
	return u.do(ctx, &c.link)
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
	return u.do(ctx, &c.link)
}

// Disassemble makes the call of Architecture.
func (c *Client) Disassemble(ctx context.Context, req *DisassembleRequest) (*DisassembleAnswer, error) {
	u := unaryCall[*pb.DisassembleRequest, *pb.DisassembleAnswer, DisassembleAnswer]{
		name: "Disassemble", request: encodeDisassembleRequest(req), rpc: c.rpc.Disassemble, maxAnswer: maxAnswer, decode: decodeDisassembleAnswer,
	}
	return u.do(ctx, &c.link)
}
