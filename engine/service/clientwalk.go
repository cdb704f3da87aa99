// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/grpc"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file has a server walk targets that stay here.

// headPart bounds the bytes of a head in a message.
const headPart = 256 << 10

// Walk has the server walk a target, which must not be used meanwhile, and writes the
// report. The report's end has facts that are not in the report. The error wraps
// engine.ErrNotWalked where nothing could be walked.
func (c *Client) Walk(ctx context.Context, t *engine.Target, j *job.Stack, write job.WriteOptions, w io.Writer) (*pb.ReportEnd, error) {
	return c.walk(ctx, t, remote.HeadOf(t, t.Labels(nil)), &pb.WalkOptions{
		Stack: j.StackOptions, Verbose: write.Verbose, Color: write.Color, WithPath: j.WithPath,
		MostBytes: uint32(min(max(write.Most, 0), math.MaxUint32)), //nolint:gosec // in range
	}, w)
}

// Snapshot has the server make the snapshot of a target, as Walk does, and writes it. The report's end counts
// its contents.
func (c *Client) Snapshot(ctx context.Context, t *engine.Target, o engine.SnapshotOptions, w io.Writer) (*pb.ReportEnd, error) {
	options := &pb.WalkOptions{Snapshot: &pb.SnapshotOptions{Files: o.Files}, AnyFile: o.AnyFile}
	return c.walk(ctx, t, remote.HeadOf(t, t.Labels(nil)), options, &notStacks{Writer: w, client: c})
}

// maxComparedPart bounds the bytes of the part of one target in a comparison.
const maxComparedPart = 256 << 20

// Part has the server make the part of a target in a comparison, as Walk does. The target has a path and labels
// there.
func (c *Client) Part(ctx context.Context, t *engine.Target, path string, labels map[string]string, crashedOnly bool) ([]byte, error) {
	head := remote.HeadOf(t, labels)
	head.Info.Path = path
	var part bytes.Buffer
	_, err := c.walk(ctx, t, head, &pb.WalkOptions{Compare: &pb.CompareOptions{Crashed: crashedOnly}}, &notStacks{Writer: &limitedBuffer{&part, maxComparedPart}, client: c})
	return part.Bytes(), err
}

// limitedBuffer refuses an answer that is too large.
type limitedBuffer struct {
	*bytes.Buffer
	most int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fmt.Errorf("the server's answer has more than %d bytes", b.most)
	}
	return b.Buffer.Write(p)
}

// notStacks refuses the report of an older server, which knows stacks alone, and writes them as JSON where it does not
// know the question.
type notStacks struct {
	io.Writer
	client *Client
	begun  bool
}

// stackReport begins the JSON of stacks.
const stackReport = "{\n \"version\""

func (n *notStacks) Write(p []byte) (int, error) {
	if !n.begun && bytes.HasPrefix(p, []byte(stackReport)) {
		return 0, n.client.older()
	}
	n.begun = true
	return n.Writer.Write(p)
}

// walk has the server walk a target that has a head.
func (c *Client) walk(ctx context.Context, t *engine.Target, described *remote.Head, o *pb.WalkOptions, w io.Writer) (end *pb.ReportEnd, err error) {
	head, err := described.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: its head: %w", t.Info().Path, err)
	}
	return c.answering(ctx, o, head, func() *remote.Responder { return remote.NewResponder(t) }, w)
}

// answering makes a call of Walk, as often as the server is too busy to begin. responder makes what answers questions.
func (c *Client) answering(ctx context.Context, o *pb.WalkOptions, head []byte, responder func() *remote.Responder, w io.Writer) (end *pb.ReportEnd, err error) {
	o.HeadSize = uint64(len(head))
	err = c.patiently(ctx, func() (mayRepeat bool, err error) {
		one := &walking{client: c, responder: responder(), out: w}
		defer one.responder.Close()
		end, err = one.run(ctx, o, head)
		return !one.hasWritten, err
	})
	return end, err
}

// walking is one call of Walk.
type walking struct {
	client     *Client
	responder  *remote.Responder
	out        io.Writer
	hasWritten bool
}

func (k *walking) run(ctx context.Context, o *pb.WalkOptions, head []byte) (*pb.ReportEnd, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := k.client
	st, err := c.calls.Walk(ctx)
	if err != nil {
		return nil, c.failure(err)
	}
	if err := sendHead(st, o, head); err != nil && !errors.Is(err, io.EOF) { // after io.EOF, Recv returns the reason
		return nil, c.failure(err)
	}
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
			err = k.responder.Answer(part.Question, func(a *pb.Answer) error { return st.Send(&pb.WalkRequest{Part: &pb.WalkRequest_Answer{Answer: a}}) })
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, c.failure(err)
			}
		case *pb.WalkResponse_Data:
			k.hasWritten = true
			if _, err := k.out.Write(part.Data); err != nil {
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
