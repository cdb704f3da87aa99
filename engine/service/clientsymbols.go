// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// This file has a server answer questions about files by build ID, and sends it the files that it lacks.

// objectPart bounds the bytes of a file in a message.
const objectPart = 256 << 10

// Symbols has the server answer the questions of a session about files that have build IDs. What the server lacks
// of a file it gets before the first question about it.
func (c *Client) Symbols(ctx context.Context, s *symbolize.Session) symbolize.Elsewhere {
	known := map[string]bool{}
	return func(id []byte, file *symbolize.File, questions []string) ([]byte, error) {
		if file != nil && !isObjectID(id) {
			return nil, symbolize.ErrNotElsewhere
		}
		isDebugFile := file == nil || file.Object.DebugOnly()
		if file != nil && !known[string(id)] {
			if err := c.Provide(ctx, id, file.Object, file.Debug); err != nil {
				return nil, err
			}
		}
		known[string(id)] = true
		r := &pb.SymbolizeQuestionsRequest{Options: job.NewSymbolQuestions(s, id, isDebugFile), Questions: questions}
		var answers []byte
		err := c.patiently(ctx, func() (mayRepeat bool, err error) {
			answers, err = c.questions(ctx, r)
			return true, err
		})
		var e *Error
		if errors.As(err, &e) && e.Code == codes.NotFound {
			err = fmt.Errorf("build ID %x: %w", id, symbolize.ErrNoBuildID)
		}
		return answers, err
	}
}

// maxAnswers bounds the bytes of the answers to a request.
const maxAnswers = 256 << 20

func (c *Client) questions(ctx context.Context, r *pb.SymbolizeQuestionsRequest) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := c.calls.SymbolizeQuestions(ctx, r)
	if err != nil {
		return nil, c.failure(err)
	}
	var out bytes.Buffer
	_, err = c.readReport(st, &limitedBuffer{&out, maxAnswers})
	return out.Bytes(), err
}

// readReport writes a report that comes in parts, and returns its end.
func (c *Client) readReport(st interface{ Recv() (*pb.Report, error) }, w io.Writer) (*pb.ReportEnd, error) {
	for {
		part, err := st.Recv()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, c.failure(err)
		}
		if _, err := w.Write(part.GetData()); err != nil {
			return nil, err
		}
		if end := part.GetEnd(); end != nil {
			return end, nil
		}
	}
}

// Provide sends the server a code object, and its separate debug file, as far as it lacks them. debug may be nil.
func (c *Client) Provide(ctx context.Context, id []byte, code, debug *object.Object) error {
	found, err := c.calls.FindObjects(ctx, &pb.FindObjectsRequest{BuildIds: [][]byte{id}})
	if err != nil {
		return c.failure(err)
	}
	var there pb.ObjectFiles
	if list := found.GetObjects(); len(list) == 1 {
		there.Executable, there.Debuginfo = list[0].GetExecutable(), list[0].GetDebuginfo()
	}
	isCodeThere := there.Executable || code.DebugOnly()
	if isDebugThere := there.Debuginfo || !code.HasDebugInfo(); !isCodeThere || !isDebugThere {
		if err := c.PutObject(ctx, id, code); err != nil {
			return err
		}
		there.Debuginfo = there.Debuginfo || code.HasDebugInfo()
	}
	if debug != nil && !there.Debuginfo {
		return c.PutObject(ctx, id, debug)
	}
	return nil
}

// isObjectID reports whether servers keep files of a build ID.
func isObjectID(id []byte) bool { return len(id) >= objects.MinID && len(id) <= objects.MaxID }

// PutObject sends the server a file that has a build ID.
func (c *Client) PutObject(ctx context.Context, id []byte, o *object.Object) error {
	if c.log != nil {
		c.log(fmt.Sprintf("%s: %d bytes are sent to the server as build ID %x", o.Name(), o.FileSize(), id))
	}
	return c.patiently(ctx, func() (mayRepeat bool, err error) { return true, c.putObject(ctx, id, o.Data()) })
}

func (c *Client) putObject(ctx context.Context, id, data []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := c.calls.PutObject(ctx)
	if err != nil {
		return c.failure(err)
	}
	err = st.Send(&pb.PutObjectRequest{Part: &pb.PutObjectRequest_BuildId{BuildId: id}})
	for err == nil && len(data) > 0 {
		part := data[:min(len(data), objectPart)]
		data = data[len(part):]
		own := make([]byte, len(part))
		// A file that is truncated meanwhile cannot be read any more.
		if err := object.Guard(func() error { copy(own, part); return nil }); err != nil {
			return err
		}
		err = st.Send(&pb.PutObjectRequest{Part: &pb.PutObjectRequest_Data{Data: own}})
	}
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF, receiving returns the reason
		return c.failure(err)
	}
	_, err = st.CloseAndRecv()
	if err != nil {
		return c.failure(err)
	}
	return nil
}
