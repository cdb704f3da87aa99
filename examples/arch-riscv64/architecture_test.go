// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"testing"

	"github.com/unwindd/unwindd/sdk/archtest"
)

func TestArchitecture(t *testing.T) { archtest.Test(t, New()) }
