// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/fleet/queueserver"
)

func init() { fleet.SetStart(queueserver.Start) }
