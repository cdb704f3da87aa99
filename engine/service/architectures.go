// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/sdk"
)

// Architectures implements servicepb.UnwinddServer.
func (c *calls) Architectures(o *pb.ArchitecturesRequest, st grpc.ServerStreamingServer[pb.Report]) error {
	return c.counted(st.Context(), "architectures", func(req *request) error {
		s := c.server
		work, err := s.work(o)
		if err != nil {
			return err
		}
		none, err := newUpload(s.spoolDir(), s.budget.of(req.caller), s.now().Body)
		if err != nil {
			return err
		}
		defer none.Close()
		work.Input = none.File
		a, err := s.begin(st.Context(), req, work)
		if err != nil {
			return err
		}
		defer a.Close()
		return sendParts(s, a, st.Send)
	})
}

// maxDescriptions bounds the bytes of descriptions that a Client takes.
const maxDescriptions = 64 << 20

// Architectures returns the descriptions of the architectures that the server's plugins have,
// beside the bundled ones. They are valid.
func (c *Client) Architectures(ctx context.Context) ([]*sdk.Description, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := c.calls.Architectures(ctx, &pb.ArchitecturesRequest{})
	if err != nil {
		return nil, c.failure(err)
	}
	var text bytes.Buffer
	for {
		m, err := st.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("server %s: %w", c.address, io.ErrUnexpectedEOF)
		case err != nil:
			return nil, c.failure(err)
		case m.GetEnd() != nil:
			list, err := job.ReadArchitectures(&text)
			if err != nil {
				return nil, fmt.Errorf("server %s: %w", c.address, err)
			}
			return list, nil
		case text.Len()+len(m.GetData()) > maxDescriptions:
			return nil, fmt.Errorf("server %s: descriptions of architectures of more than %d bytes", c.address, maxDescriptions)
		}
		text.Write(m.GetData())
	}
}
