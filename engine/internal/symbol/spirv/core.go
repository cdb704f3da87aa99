// SPDX-License-Identifier: Apache-2.0

package spirv

import "slices"

// The instructions of the core specification that this package reads (SPIR-V, 3.49).
const (
	opUndef                     = 1
	opSourceContinued           = 2
	opSource                    = 3
	opName                      = 5
	opString                    = 7
	opLine                      = 8
	opExtInstImport             = 11
	opExtInst                   = 12
	opEntryPoint                = 15
	opTypeVoid                  = 19
	opTypeInt                   = 21
	opConstant                  = 43
	opFunction                  = 54
	opFunctionParameter         = 55
	opFunctionEnd               = 56
	opFunctionCall              = 57
	opVariable                  = 59
	opDecorate                  = 71
	opLabel                     = 248
	opBranch                    = 249
	opBranchConditional         = 250
	opSwitch                    = 251
	opKill                      = 252
	opReturn                    = 253
	opReturnValue               = 254
	opUnreachable               = 255
	opNoLine                    = 317
	opTerminateInvocation       = 4416
	opExtInstWithForwardRefsKHR = 4433
	opIgnoreIntersectionKHR     = 4448
	opTerminateRayKHR           = 4449
	opAbortKHR                  = 5121
	opEmitMeshTasksEXT          = 5294
	decorationLinkageAttributes = 41
	controlDontInline           = 2 // of Function Control
)

// terminators end a block (SPIR-V, 2.2.5).
var terminators = map[uint16]bool{
	opBranch: true, opBranchConditional: true, opSwitch: true,
	opKill: true, opReturn: true, opReturnValue: true, opUnreachable: true,
	opTerminateInvocation: true, opIgnoreIntersectionKHR: true, opTerminateRayKHR: true,
	opAbortKHR: true, opEmitMeshTasksEXT: true,
}

// typedResults are the instructions that have a result's type and its ID as
// their first operands: ranges of numbers, both ends included.
var typedResults = [][2]uint16{
	{1, 1}, {12, 12}, {41, 46}, {48, 52}, {54, 55}, {57, 57}, {59, 61}, {65, 70}, {77, 84},
	{86, 98}, {100, 107}, {109, 124}, {126, 152}, {154, 191}, {194, 205}, {207, 215}, {227, 227}, {229, 242},
	{245, 245}, {259, 259}, {261, 271}, {274, 279}, {282, 286}, {291, 296}, {299, 300}, {303, 316}, {318, 318},
	{320, 321}, {323, 326}, {328, 328}, {333, 366}, {400, 403}, {4160, 4162}, {4164, 4164}, {4166, 4166}, {4181, 4181},
	{4183, 4184}, {4195, 4195}, {4418, 4425}, {4427, 4434}, {4447, 4447}, {4450, 4455}, {4457, 4457}, {4459, 4463}, {4477, 4477},
	{4479, 4483}, {4497, 4497}, {4500, 4503}, {4540, 4542}, {4545, 4545}, {5000, 5007}, {5011, 5012}, {5056, 5056}, {5074, 5074},
	{5078, 5078}, {5090, 5090}, {5101, 5101}, {5110, 5111}, {5119, 5119}, {5126, 5126}, {5129, 5129}, {5147, 5148}, {5158, 5159},
	{5252, 5255}, {5257, 5258}, {5265, 5265}, {5267, 5278}, {5283, 5283}, {5289, 5289}, {5292, 5293}, {5296, 5296}, {5300, 5302},
	{5307, 5308}, {5320, 5320}, {5322, 5334}, {5340, 5340}, {5345, 5352}, {5359, 5359}, {5361, 5363}, {5366, 5367}, {5369, 5369},
	{5372, 5379}, {5381, 5382}, {5384, 5384}, {5390, 5396}, {5398, 5398}, {5427, 5439}, {5571, 5575}, {5577, 5577}, {5580, 5580},
	{5585, 5598}, {5600, 5601}, {5610, 5611}, {5614, 5615}, {5631, 5631}, {5699, 5699}, {5713, 5816}, {5818, 5819}, {5840, 5843},
	{5846, 5882}, {5923, 5934}, {5938, 5938}, {5949, 5949}, {6016, 6032}, {6035, 6035}, {6116, 6117}, {6145, 6145}, {6163, 6163},
	{6165, 6165}, {6237, 6237}, {6242, 6242}, {6244, 6244}, {6251, 6254}, {6258, 6258}, {6401, 6408}, {6426, 6426}, {6428, 6428},
	{6529, 6531}, {6916, 6918},
}

// untypedResults are the instructions that have only a result's ID.
var untypedResults = []uint16{
	7, 11, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36,
	37, 38, 73, 248, 322, 327, 4163, 4190, 4417, 4456, 4472, 5076, 5103, 5104, 5115, 5281, 5288, 5313, 5341, 5358,
	5370, 5371, 5609, 5700, 5701, 5702, 5703, 5704, 5705, 5706, 5707, 5708, 5709, 5710, 5711, 5712, 5911, 5912, 5913, 6086,
	6199,
}

// resultAt is the index of a result's ID among an instruction's words; 0: it has none.
func resultAt(op uint16) int {
	i, _ := slices.BinarySearchFunc(typedResults, op, func(r [2]uint16, op uint16) int { return int(r[1]) - int(op) })
	if i < len(typedResults) && typedResults[i][0] <= op {
		return 2
	}
	if _, ok := slices.BinarySearch(untypedResults, op); ok {
		return 1
	}
	return 0
}
