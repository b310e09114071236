// The least that asks privately: see example.html.
import { connect } from "./primer.js";

const output = document.querySelector("output");
const client = connect();

document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  output.textContent = "Asking…";
  try {
    const { label } = await (await client).classify(document.querySelector("input").value);
    output.textContent = label;
  } catch (error) {
    output.textContent = error.message;
  }
});
