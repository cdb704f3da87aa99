// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

import (
	"errors"
	"time"
)

// processorTime is unsupported here: the time on the clock counts.
func processorTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
