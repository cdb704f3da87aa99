// SPDX-License-Identifier: Apache-2.0

package isa

// vectorOperations are the operations on vector registers. VOP3 has the operations
// of VOPC, VOP1 and VOP2, too (inLongForm).
var vectorOperations = [tableFormats][]row{
	vop2: {
		{Other, 1, 0, 0, numbers{
			gfx9: "00-16 1f-23 26-36 3b 3d", gfx908: "37-3a 3c", gfx950: "16", gfx10: "01 03-0c 0f-14 16 18 1a-1f 25-27 2b 2f 32-36 39-3b",
			gfx11: "01 03-0c 0f-14 18-1e 25-27 2b 2f", gfx12: "01 03-05 07-0c 11-16 18-1e 25-27 2b 2f",
		}},
		{Other, 1, 0, literal | short, numbers{gfx9: "17-18 24-25", gfx10: "20-21 2c-2d 37-38", gfx11: "2c-2d", gfx12: "2c-2d"}},
		{Other, 1, 0, vcc, numbers{gfx9: "19-1e", gfx10: "28-2a", gfx11: "20-22", gfx12: "20-22"}},
		{Other, 2, 0, 0, numbers{gfx90a: "04", gfx12: "02 06 0d-0e 1f", gfx125: "17 28-2a"}},
		{Other, 1, 0, short, numbers{gfx10: "02 0d 3c", gfx11: "02 3c", gfx12: "3c"}},
		{Other, 1, 0, half, numbers{gfx11: "32-36 39-3b", gfx12: "30-36 3b"}},
		{Other, 1, 0, literal | half | short, numbers{gfx11: "37-38", gfx12: "37-38"}},
		{Other, 2, 0, literal64 | short, numbers{gfx125: "23-24"}},
		{none, 0, 0, 0, numbers{gfx94: "16", gfx103: "1f-21"}},
	},
	vop1: {
		{VMovB32, 1, 0, 0, numbers{gfx9: "01", gfx10: "01", gfx11: "01", gfx12: "01"}},
		{VReadfirst, 1, 0, scalarDst | short, numbers{gfx9: "02", gfx10: "02", gfx11: "02", gfx12: "02"}},
		{VMovB32, 1, 0, agpr | fromAGPR | short, numbers{gfx90a: "52"}},
		{VMovB64, 2, 0, 0, numbers{gfx94: "38", gfx125: "1d"}},
		{Other, 0, 0, 0, numbers{gfx9: "00 35", gfx10: "00 1b 41", gfx11: "00 1b", gfx12: "00 1b"}},
		{Other, 1, 0, 0, numbers{
			gfx9: "03 05-08 0a-0f 11-15 1b-24 27 29-30 33-34 37 39-4f", gfx94: "54-55", gfx950: "58 5b",
			gfx10: "03 05-08 0a-0f 11-15 20-25 27 2a-2b 2e 33 35-3c 3f-40 43 50-64",
			gfx11: "03 05-08 0b-0f 11-15 20-25 27 2a-2b 2e 33 35-3c 3f-40 43 6a-6b",
			gfx12: "03 05-08 0b-0f 11-15 20-25 27 2a-2b 2e 33 35-3c 3f-40 43 6a-6d", gfx125: "1e 4b 72 75-76",
		}},
		{Other, 2, 0, 0, numbers{
			gfx9: "04 10 16-1a 25-26 28 31-32", gfx94: "56-57", gfx10: "04 10 16-1a 2f 31 34 3d-3e", gfx11: "04 10 16-1a 2f 31 34 3d-3e",
			gfx12: "04 10 16-1a 2f 31 34 3d-3e 6e-6f",
		}},
		{Other, 1, 0, both | short, numbers{gfx9: "51", gfx10: "65", gfx11: "65", gfx12: "65"}},
		{Other, 1, 0, both, numbers{gfx950: "59-5a", gfx125: "49"}},
		{Other, 1, 0, anyVector, numbers{gfx10: "42 44 48", gfx11: "42 44 48", gfx12: "42 44 48"}},
		{Other, 1, 0, both | anyVector | short, numbers{gfx10: "68", gfx11: "68", gfx12: "68"}},
		{Other, 1, 0, half, numbers{gfx11: "0a 1c 50-64 69", gfx12: "0a 1c 50-64 69", gfx125: "1f 4a 73-74 77-7f"}},
		{Other, 1, 0, both | half | short, numbers{gfx11: "66", gfx12: "66"}},
		{Other, 1, 0, short, numbers{gfx11: "67", gfx12: "67"}},
	},
	vopc: {
		{Other, 0, 0, vcc, numbers{
			gfx9: "10 12 14 20-2f 40-4f 60-6f a0-af c0-cf e0-ef", gfx10: "00-0f 20-2f 80-8f a0-ae c0-cf e0-ef",
			gfx11: "00-2f 31-36 39-3e 40-5f 7d-7f", gfx12: "01-0e 11-1e 21-2e 31-36 39-3e 41-46 49-4e 51-56 59-5e 7d-7f",
		}},
		{Other, 0, 0, vcc | execDst, numbers{gfx9: "11 13 15 30-3f 50-5f 70-7f b0-bf d0-df f0-ff"}},
		{Other, 0, 0, execDst, numbers{
			gfx10: "10-1f 30-3f 90-9f b0-be d0-df f0-ff", gfx11: "80-af b1-b6 b9-be c0-df fd-ff",
			gfx12: "81-8e 91-9e a1-ae b1-b6 b9-be c1-c6 c9-ce d1-d6 d9-de fd-ff",
		}},
	},
	vop3: {
		{VReadlane, 1, 0, scalarDst, numbers{gfx9: "289", gfx10: "360", gfx11: "360", gfx12: "360"}},
		{VWritelane, 1, 0, allLanes, numbers{gfx9: "28a", gfx10: "361", gfx11: "361", gfx12: "361"}},
		{Other, 1, 0, 0, numbers{
			gfx9: "1c0-1cb 1cd-1de 1e2 1e4 1ea-207 270-272 274-277 285-288 28b-28d 293-29a 29c-2a0", gfx90a: "2a1", gfx94: "2a2-2a5",
			gfx950: "233-238 23b-23e 240-251 265-26a 2a6-2a9",
			gfx10:  "140-14b 14d-15f 169-16c 16f 171 178 200-202 303-305 307-30e 311-314 340 342-347 34b 351-35a 35e-35f 362-366 368-36b 36d 36f 371-373 375-378 37f",
			gfx11:  "209-213 215-227 237 239 240-241 244-251 253-267 303-307 309-30e 311-313 31c-326 32c-32e 338-33a 362-364",
			gfx12:  "209-213 215-218 21a-21b 21d-21e 220-227 229-232 237 239 240-241 244-248 24a-24b 24d-24e 250-251 253-25d 262-26f 303-307 309-313 31c-326 32c-32e 338-33a 362-36c",
			gfx125: "233-235 25e-261 270-273 290-291 297 2b0 2b3 2b8-2b9 2bc 314 36d-370 372-375",
		}},
		{Other, 2, 0, 0, numbers{
			gfx9: "1cc 1df 1e3 1e5-1e6 280-284 28f-292", gfx94: "208", gfx950: "239-23a 23f", gfx10: "14c 160 164-168 170 172-174 2ff-301",
			gfx11: "214 228 238 23a-23b 327-32b 32f 33c-33e", gfx12: "214 228 238 23a-23b 32b 32f 33d-33e 341-342",
			gfx125: "23f 252 298-299 2b4-2b5 2bf-2c6 2fa-2fb 318-31b",
		}},
		{Other, 1, 0, second, numbers{gfx9: "1e0", gfx10: "16d 30f-310 319", gfx11: "2fc 300-302", gfx12: "2fc 300-302"}},
		{Other, 2, 0, second, numbers{gfx9: "1e1 1e8-1e9", gfx10: "16e 176-177", gfx11: "2fd-2ff", gfx12: "2fd-2ff"}},
		{Other, 4, 0, 0, numbers{gfx9: "1e7", gfx10: "175", gfx11: "23d", gfx12: "23d", gfx125: "243 29f-2a0 2a8-2a9 2ab-2ac"}},
		{Other, 6, 0, 0, numbers{gfx950: "252-255 258-25f"}},
		{Other, 32, 0, 0, numbers{gfx950: "256-257"}},
		{Other, 16, 0, 0, numbers{gfx950: "260-263", gfx125: "2c9 2cc"}},
		{Other, 3, 0, 0, numbers{gfx125: "242 2cd-2d8"}},
		{Other, 8, 0, 0, numbers{gfx125: "2a1 2aa 2ad 2c7-2c8 2ca-2cb"}},
		{Other, 1, 0, scalarDst, numbers{gfx12: "280-289"}},
		{none, 0, 0, 0, numbers{gfx90a: "270-272 274-277", gfx94: "1c0-1c1", gfx103: "141 16b", gfx125: "266-267"}},
	},
	vop3p: {
		{VMovB32, 1, 0, fromAGPR, numbers{gfx908: "58"}},
		{VMovB32, 1, 0, agpr, numbers{gfx908: "59"}},
		{Other, 1, 0, 0, numbers{
			gfx9: "00-12 20-23 26-2b", gfx950: "1a-1c", gfx10: "00-19 20-22", gfx11: "00-13 16-1a 20-22", gfx12: "00-10 13 16-1e 20-22",
			gfx125: "11 14-15 23 2a-32 36-39 3d-3f",
		}},
		{Other, 32, 0, allLanes | agpr, numbers{gfx908: "40 48 50 68"}},
		{Other, 16, 0, allLanes | agpr, numbers{gfx908: "41 44 49 4c 51 54 69 6c"}},
		{Other, 4, 0, allLanes | agpr, numbers{gfx908: "42 45 4a 4d 52 55 6b 6d"}},
		{Other, 2, 0, 0, numbers{gfx90a: "30-33", gfx125: "1f 28-29"}},
		{Other, 32, 0, allLanes | eitherFile, numbers{gfx90a: "40 48 50 63 68", gfx94: "5d"}},
		{Other, 16, 0, allLanes | eitherFile, numbers{
			gfx90a: "41 44 49 4c 51 54 64 66 69 6c", gfx94: "3f 56 5e 60 68 74-77 7c-7f", gfx950: "37-38 46-47 4b 4e-4f 53 55 5b",
		}},
		{Other, 4, 0, allLanes | eitherFile, numbers{
			gfx90a: "42 45 4a 4d 52 55 65 67 6b 6d", gfx94: "3e 57 5f 61-62 66 6a 70-73 78-7b", gfx950: "35-36 39-3d 43 54 5a",
		}},
		{Other, 8, 0, allLanes | eitherFile, numbers{gfx90a: "6e"}},
		{Other, 2, 0, allLanes | eitherFile, numbers{gfx90a: "6f"}},
		{Other, 0, 0, prefix, numbers{gfx950: "2c", gfx125: "35 3a"}},
		{Other, 16, 0, allLanes | eitherFile | scaled, numbers{gfx950: "2e"}},
		{Other, 4, 0, allLanes | eitherFile | scaled, numbers{gfx950: "2d"}},
		{Other, 8, 0, allLanes | scaled, numbers{gfx125: "33"}},
		{Other, 16, 0, allLanes | scaled, numbers{gfx125: "88"}},
		{Other, 8, 0, allLanes, numbers{gfx11: "40-45", gfx12: "40-41 44-4a 50-51 54-5a", gfx125: "5d 60 62 65-66 69-6d 72-76 7b 80-83"}},
		{Other, 4, 0, allLanes, numbers{gfx12: "42-43 52-53", gfx125: "61 63-64 67-68 6e-71 77-7a 84-87"}},
		{none, 0, 0, 0, numbers{gfx94: "54-55 63 65 67 69 6b 6d", gfx950: "3e-3f", gfx125: "13 1a"}},
	},
	vopd: {
		{Other, 1, 0, 0, numbers{gfx11: "00 03-0d", gfx12: "00 03-0d"}},
		{Other, 1, 0, literal, numbers{gfx11: "01-02", gfx12: "01-02"}},
	},
	vopdY: {
		{Other, 1, 0, 0, numbers{gfx11: "00 03-0d 10-12", gfx12: "00 03-0d 10-12", gfx125: "14-18"}},
		{Other, 1, 0, literal, numbers{gfx11: "01-02", gfx12: "01-02"}},
		{none, 0, 0, 0, numbers{gfx125: "12"}},
	},
	vopd3: {
		{Other, 1, 0, 0, numbers{gfx125: "00 03-0d 10-11 13-16"}},
		{Other, 2, 0, 0, numbers{gfx125: "20-24"}},
	},
	vopd3Y: {
		{Other, 1, 0, 0, numbers{gfx125: "00 03-0d 10-18"}},
	},
	vinterp: {
		{Other, 1, 0, 0, numbers{gfx11: "00-05", gfx12: "00-05"}},
	},
	vintrp: {
		{Other, 1, 0, 0, numbers{gfx9: "00-02", gfx10: "00-02"}},
		{none, 0, 0, 0, numbers{gfx90a: "00-02"}},
	},
}
