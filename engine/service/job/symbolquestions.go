// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"math"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// SymbolQuestions asks what the code and the data of the file with a build ID are called. The input has a line of
// llvm-symbolizer's protocol for each question; the report has the answers as symbolize.Session encodes them.
type SymbolQuestions struct {
	*pb.SymbolQuestionOptions `json:"options"`
}

// Check refuses options that have no meaning.
func (s *SymbolQuestions) Check() error {
	if err := checkBuildID(s.BuildId); err != nil {
		return err
	}
	if _, ok := pb.SymbolQuestionOptions_Style_name[int32(s.Style)]; !ok {
		return wrong("style %d: expected 0 to %d", s.Style, len(pb.SymbolQuestionOptions_Style_name)-1)
	}
	if _, ok := pb.SymbolQuestionOptions_Functions_name[int32(s.Functions)]; !ok {
		return wrong("functions %d: expected 0 to %d", s.Functions, len(pb.SymbolQuestionOptions_Functions_name)-1)
	}
	return nil
}

// checkBuildID refuses a malformed build ID.
func checkBuildID(id []byte) error {
	if n := len(id); n < 2 || n > 64 {
		return wrong("build ID \"%x\": expected 2 to 64 bytes in hexadecimal", id)
	}
	return nil
}

// NewSymbolQuestions makes the options of questions that a session here asks about a file.
func NewSymbolQuestions(s *symbolize.Session, id []byte, isDebugFile bool) *pb.SymbolQuestionOptions {
	return &pb.SymbolQuestionOptions{
		BuildId: id, Style: pb.SymbolQuestionOptions_Style(min(s.Output.Style, math.MaxInt32)), //nolint:gosec // a few
		Functions: pb.SymbolQuestionOptions_Functions(min(s.Output.Functions, math.MaxInt32)), //nolint:gosec // a few
		NoInlines: !s.Inlines, Hex: s.Hex, AdjustVma: s.AdjustVMA, DebugFile: isDebugFile, Source: s.Output.Context > 0,
	}
}

func (s *SymbolQuestions) run(r *Request) (o Outcome, err error) {
	open := r.Tools.Symbolizer.OpenCode
	if s.DebugFile {
		open = r.Tools.Symbolizer.OpenBuildID
	}
	file, err := open(s.BuildId)
	if err != nil {
		r.Tools.forget()
		if errors.Is(err, symbolize.ErrNoBuildID) {
			err = fmt.Errorf("build ID %x: %w", s.BuildId, ErrNoObject)
		}
		return o, err
	}
	if file.Debug == nil && !file.Object.HasDebugInfo() { // what has it may be put later
		defer r.Tools.forget()
	}
	session := symbolize.Session{
		Symbolizer: r.Tools.Symbolizer, BuildID: s.BuildId, Inlines: !s.NoInlines, Tool: "unwindd", Hex: s.Hex, AdjustVMA: s.AdjustVma,
		Encoded: true, WithSource: s.Source, CodeFirst: !s.DebugFile,
		Output: symbolize.WriterOptions{Style: symbolize.Style(s.Style), Functions: symbolize.FunctionNames(s.Functions)},
		Refuse: func(string) error { return nil },
	}
	return o, session.Run(r.Report, nil, r.Input)
}
