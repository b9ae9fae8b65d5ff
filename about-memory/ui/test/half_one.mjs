import { half } from "./half.mjs";

await half(0);
