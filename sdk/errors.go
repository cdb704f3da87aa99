// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/internal/panics"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// RemoteError is an error of a plugin's method in another process, or its
// panic. The process itself is well. Every other error of a Client, except errors of the
// caller's context, means that the process or the connection is not.
type RemoteError struct {
	Call     string // "FrameRules"
	Message  string
	Panicked bool
	Place    string // where it panicked: "isa.decode (decode.go:12), called by ..."
	is       error  // ErrNotImplemented, ErrObjectNotOpen, or nil
	// isDetailed: it came with an ArchitectureError, which no gRPC library sends by itself.
	isDetailed bool
}

func (e *RemoteError) Error() string {
	if e.Panicked {
		return fmt.Sprintf("%s: the plugin panicked: %s", e.Call, panics.Line(e.Message, e.Place))
	}
	return fmt.Sprintf("%s: %s", e.Call, e.Message)
}

// Unwrap returns ErrNotImplemented or ErrObjectNotOpen where the method answered one
// of them.
func (e *RemoteError) Unwrap() error { return e.is }

// architectureError returns the status of a call that failed in the architecture's
// method.
func architectureError(call string, err error) error {
	code := codes.Unknown
	switch {
	case errors.Is(err, ErrNotImplemented):
		code = codes.Unimplemented
	case errors.Is(err, ErrObjectNotOpen):
		code = codes.FailedPrecondition
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return withDetail(status.New(code, headerText(err.Error())), &pb.ArchitectureError{Call: call})
}

// panicError returns the status of a call in which the architecture panicked.
func panicError(call, value, place string) error {
	return withDetail(status.New(codes.Internal, headerText(value)),
		&pb.ArchitectureError{Call: call, Panicked: true, Place: headerText(place)})
}

func withDetail(s *status.Status, detail *pb.ArchitectureError) error {
	if detailed, err := s.WithDetails(detail); err == nil {
		s = detailed
	}
	return s.Err()
}

// callError converts the error of a call over gRPC.
func callError(ctx context.Context, call string, err error) error {
	s := status.Convert(err)
	var own *pb.ArchitectureError
	for _, d := range s.Details() {
		if d, ok := d.(*pb.ArchitectureError); ok {
			own = d
		}
	}
	isDetailed := own != nil
	if own == nil && isServersOwn(s.Code()) {
		own = &pb.ArchitectureError{} // the server sends no details
	}
	var fault *engineFault
	switch {
	case errors.As(context.Cause(ctx), &fault):
		return fmt.Errorf("%s: %w", call, fault)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", call, ctx.Err())
	case s.Code() == codes.DeadlineExceeded:
		// The other side's clock was a little faster.
		return fmt.Errorf("%s: %w", call, context.DeadlineExceeded)
	case own != nil:
		e := &RemoteError{Call: call, Message: s.Message(), Panicked: own.GetPanicked(), Place: own.GetPlace(), isDetailed: isDetailed}
		switch s.Code() {
		case codes.Unimplemented:
			e.is = ErrNotImplemented
			e.Message = cmp.Or(e.Message, ErrNotImplemented.Error()) // C++'s has none
		case codes.FailedPrecondition:
			e.is = ErrObjectNotOpen
		}
		return e
	}
	return fmt.Errorf("%s: %w", call, err)
}

// isServersOwn reports whether a code is from the method that was called: gRPC itself ends
// no call with it while the process and the connection are well.
func isServersOwn(code codes.Code) bool {
	switch code {
	case codes.Unknown, codes.Unimplemented, codes.FailedPrecondition, codes.InvalidArgument:
		return true
	}
	return false
}

// engineError converts the error of a read from the engine: it has the engine's own text
// where it answered.
func engineError(ctx context.Context, call string, err error) error {
	s := status.Convert(err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", call, ctx.Err())
	case s.Code() == codes.Unknown:
		return errors.New(s.Message())
	}
	return fmt.Errorf("%s: %w", call, err)
}

// headerText returns text that is fit for a header: valid and bounded.
func headerText(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + "..."
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
