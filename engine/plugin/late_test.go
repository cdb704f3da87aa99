// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestLateAlsoWhenTheProcessSawItsDeadlineFirst(t *testing.T) {
	soon, cancel := context.WithTimeout(context.Background(), deadlineSkew/2)
	defer cancel()
	far, cancelFar := context.WithTimeout(context.Background(), time.Hour)
	defer cancelFar()
	over, cancelOver := context.WithTimeout(context.Background(), 0)
	defer cancelOver()
	theirs := fmt.Errorf("BindThreads: %w", context.DeadlineExceeded)
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want bool
	}{
		{"the deadline is over here", over, nil, true},
		{"the process says so first", soon, theirs, true},
		{"the process says so, and there is time left", far, theirs, false},
		{"another error near the deadline", soon, context.Canceled, false},
		{"no deadline", context.Background(), theirs, false},
	} {
		if got := isLate(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
}
