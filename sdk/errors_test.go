// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestErrorsOfServersWithoutDetails(t *testing.T) {
	for _, c := range []struct {
		code codes.Code
		own  bool
		is   error
	}{
		{codes.Unknown, true, nil},
		{codes.InvalidArgument, true, nil},
		{codes.Unimplemented, true, ErrNotImplemented},
		{codes.FailedPrecondition, true, ErrObjectNotOpen},
		{codes.Unavailable, false, nil},
		{codes.Internal, false, nil},
		{codes.ResourceExhausted, false, nil},
	} {
		err := callError(context.Background(), "Translate", status.Error(c.code, "no"))
		var remote *RemoteError
		if errors.As(err, &remote) != c.own || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v: %v, expected an error of the method: %t, and %v", c.code, err, c.own, c.is)
		}
	}
}
