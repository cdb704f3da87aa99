// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bufio"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// maxQuestionLines bounds the questions of one request.
const maxQuestionLines = 1 << 16

// SymbolizeQuestions implements servicepb.UnwinddServer.
func (c *calls) SymbolizeQuestions(r *pb.SymbolizeQuestionsRequest, st grpc.ServerStreamingServer[pb.Report]) error {
	return c.counted(st.Context(), "symbolize", func(req *request) error {
		s := c.server
		switch n := len(r.GetQuestions()); {
		case r.GetOptions() == nil:
			return badRequest.new("the request has no options")
		case n == 0 || n > maxQuestionLines:
			return badRequest.new(fmt.Sprintf("%d questions, expected 1 to %d", n, maxQuestionLines))
		}
		work, err := s.work(r.GetOptions())
		if err != nil {
			return err
		}
		input, err := newUpload(s.spoolDir(), s.budget.of(req.caller), s.now().Body)
		if err != nil {
			return err
		}
		defer input.Close()
		out := bufio.NewWriter(input)
		for _, q := range r.GetQuestions() {
			if strings.ContainsAny(q, "\r\n") {
				return badRequest.new("a question of several lines")
			}
			if _, err := fmt.Fprintln(out, q); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		a, err := s.beginOn(st.Context(), req, work, input)
		if err != nil {
			return err
		}
		defer a.Close()
		return sendParts(s, a, st.Send)
	})
}
